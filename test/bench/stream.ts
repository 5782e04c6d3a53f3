/**
 * P1: a stream through Lingtai against the same stream straight from the provider and through a process that only passes bytes on. Provider,
 * pass-through, server and reader are processes of their own on one machine; each figure is taken in turns with the ones it is compared to.
 *
 *   --passes N        how often each is measured (3)
 *   --streams 1,200   how many at once (1,20,200)
 *   --tier full|light what to measure (full where DATABASE_URL and REDIS_URL are set, and light)
 *   --profile DIR     writes a CPU profile of the server there
 */
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { fullTierServicesIfAny } from '../support/environment.ts'
import type { Bar, Bench } from './support/bench.ts'
import { startChild } from './support/child.ts'
import { startTarget } from './stream/target.ts'
import type { Target } from './stream/target.ts'
import { measure } from './stream/measure.ts'
import type { Figures, Shape } from './stream/measure.ts'
import { closeReaders } from './stream/readers.ts'
import { writeReport } from './stream/report.ts'

const folder = fileURLToPath(new URL('./stream/', import.meta.url))

export const bench: Bench = async ({ args, say }) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      passes: { type: 'string', default: '3' },
      streams: { type: 'string', default: '1,20,200' },
      tier: { type: 'string' },
      profile: { type: 'string' },
      write: { type: 'boolean', default: true },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const tiers =
    values.tier === undefined
      ? fullTierServicesIfAny()
        ? (['full', 'light'] as const)
        : (['light'] as const)
      : ([values.tier === 'full' ? 'full' : 'light'] as const)
  const shapes = values.streams
    .split(',')
    .map(Number)
    .flatMap((streams): Shape[] =>
      streams === 1
        ? [{ streams, start: 'in turn' }]
        : [
            { streams, start: 'spread' },
            { streams, start: 'at once' },
          ],
    )
  const most = Math.max(...shapes.map((shape) => shape.streams))

  const upstream = await startChild({ file: join(folder, 'upstream.ts'), readyLine: /^port (\d+)$/ })
  const upstreamUrl = `http://127.0.0.1:${upstream.line[1]}`
  const passThrough = await startChild({ file: join(folder, 'pass-through.ts'), args: [upstreamUrl], readyLine: /^port (\d+)$/ })
  const direct: Target[] = [
    { name: 'provider', kind: 'provider', baseUrl: upstreamUrl, people: [], pid: null, services: [], end: () => upstream.end() },
    {
      name: 'pass-through',
      kind: 'provider',
      baseUrl: `http://127.0.0.1:${passThrough.line[1]}`,
      people: [],
      pid: passThrough.pid,
      services: [],
      end: () => passThrough.end(),
    },
  ]
  const figures: Figures[] = []
  try {
    for (const tier of tiers) {
      const lingtai = await startTarget({ tier, upstreamUrl, people: most, profile: values.profile })
      try {
        // The light tier stands beside the others and has no bar; a pass that nothing is compared with needs no company.
        const targets = [...direct, lingtai]
        for (const target of targets) await measure(target, { streams: Math.min(most, 20), start: 'spread' }, 'warm-up')
        for (let pass = 1; pass <= Number(values.passes); pass++) {
          for (const shape of shapes) {
            for (const target of targets) {
              const measured = await measure(target, shape, pass)
              figures.push(measured)
              say(told(measured))
            }
          }
        }
      } finally {
        await lingtai.end()
      }
    }
  } finally {
    closeReaders()
    for (const target of direct) await target.end()
  }
  const bars = writeReport(figures, { write: values.write && !values['no-write'] })
  return bars
}

function told(figures: Figures): string {
  const { target, shape, pass, ttft, rate, cpuMs, lost, wrong } = figures
  const cpu = Object.entries(cpuMs)
    .map(([name, value]) => `${name} ${value.toFixed(1)}`)
    .join(', ')
  return `pass ${pass}  ${target.padEnd(12)} ${String(shape.streams).padStart(3)} ${shape.start.padEnd(7)}  first ${ttft.p50.toFixed(1)} / ${ttft.p95.toFixed(1)} ms  rate ${rate.toFixed(1)}/s  cpu a stream: ${cpu || '-'}  lost ${lost} wrong ${wrong}  load ${loadavg()[0]?.toFixed(1)}`
}

export type { Bar }
