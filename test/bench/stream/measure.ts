/** One measurement: so many readers of one target, each reading stream after stream. */
import { loadavg } from 'node:os'
import { cpuMsOf } from '../support/process-cpu.ts'
import { median, percentile } from '../support/statistics.ts'
import { readLingtai, readProvider, storedText } from './readers.ts'
import type { Reading } from './readers.ts'
import { answerOf, CHUNKS, PIECE_MS } from './script.ts'
import type { Target } from './target.ts'

/**
 * `in turn`: one stream after another. `spread`: the readers begin one after another over the length of a stream, then each reads on, so
 * that all streams are under way all the time. `at once`: all begin in the same moment, once: a crowd at a door.
 */
export type Shape = { streams: number; start: 'in turn' | 'spread' | 'at once' }

export type Figures = {
  target: string
  shape: Shape
  pass: number | 'warm-up'
  streams: number
  /** Milliseconds from the question's first byte to the answer's first text. */
  ttft: { p50: number; p95: number }
  /** Pieces of text a second, from the first to the last; the median stream. */
  rate: number
  /** CPU milliseconds a stream, by process. */
  cpuMs: Record<string, number>
  /** Streams that ended otherwise than complete. */
  lost: number
  /** Streams whose text, as it was read or as it is stored, is not what the provider said. */
  wrong: number
  load: number
}

const ROUNDS = { 'in turn': 12, spread: 4, 'at once': 1 }

/** Keys are never used twice, so that nothing that was read before can be taken for what is read now. */
let nextKey = 1

export async function measure(target: Target, shape: Shape, pass: Figures['pass']): Promise<Figures> {
  const readings: { reader: number; reading: Reading }[] = []
  const failures: unknown[] = []
  const read = async (reader: number, rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const key = nextKey++
      try {
        readings.push({ reader, reading: await readOnce(target, reader, key) })
      } catch (error) {
        failures.push(error)
      }
    }
  }
  const before = await cpuOf(target)
  const gap = shape.start === 'spread' ? (CHUNKS * PIECE_MS) / shape.streams : 0
  const rounds = ROUNDS[shape.start]
  await Promise.all(
    Array.from({ length: shape.streams }, async (_, reader) => {
      if (gap > 0) await new Promise((resolve) => setTimeout(resolve, reader * gap))
      await read(reader, rounds)
    }),
  )
  const after = await cpuOf(target)
  const load = loadavg()[0] ?? Number.NaN
  if (failures.length > 0)
    process.stderr.write(`${target.name}: ${failures.length} streams failed, the first with ${String(failures[0])}\n`)

  const count = shape.streams * rounds
  const wrong = await countWrong(target, readings)
  const firsts = readings.map(({ reading }) => reading.firstMs)
  return {
    target: target.name,
    shape,
    pass,
    streams: count,
    ttft: { p50: median(firsts), p95: percentile(firsts, 0.95) },
    rate: median(readings.map(({ reading }) => ((CHUNKS - 1) * 1000) / reading.spanMs)),
    cpuMs: Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, (ms - (before[name] ?? 0)) / count])),
    lost: failures.length + readings.filter(({ reading }) => !reading.complete).length,
    wrong,
    load,
  }
}

function readOnce(target: Target, reader: number, key: number): Promise<Reading> {
  const person = target.people[reader]
  if (target.kind === 'provider') return readProvider(target.baseUrl, key)
  if (!person) throw new Error(`${target.name} has no person ${reader}`)
  return readLingtai(target.baseUrl, person, key)
}

async function countWrong(target: Target, readings: readonly { reader: number; reading: Reading }[]): Promise<number> {
  let wrong = 0
  for (const { reader, reading } of readings) {
    const person = target.people[reader]
    const stored = person && reading.candidateId !== null ? await storedText(target.baseUrl, person, reading.candidateId) : reading.text
    if (reading.text !== answerOf(reading.key) || stored !== reading.text) wrong += 1
  }
  return wrong
}

async function cpuOf(target: Target): Promise<Record<string, number>> {
  const services = await Promise.all(target.services.map(async (service) => [service.name, await service.cpuMs()] as const))
  return Object.fromEntries([...(target.pid === null ? [] : [['server', cpuMsOf(target.pid)] as const]), ...services])
}
