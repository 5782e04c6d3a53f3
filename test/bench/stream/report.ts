import type { Bar } from '../support/bench.ts'
import { median, round } from '../support/statistics.ts'
import type { Figures, Shape } from './measure.ts'

/** The medians over the passes, as bars. */
export function writeReport(figures: readonly Figures[], _options: { write: boolean }): Bar[] {
  return barsOf(figures)
}

function barsOf(figures: readonly Figures[]): Bar[] {
  const find = (target: string, streams: number, start: Shape['start']) =>
    figures.filter((one) => one.target === target && one.shape.streams === streams && one.shape.start === start)
  const middle = (target: string, streams: number, start: Shape['start'], of: (one: Figures) => number) =>
    median(find(target, streams, start).map(of))
  const bars: Bar[] = []
  if (find('full tier', 1, 'in turn').length > 0) {
    const added = middle('full tier', 1, 'in turn', (one) => one.ttft.p50) - middle('provider', 1, 'in turn', (one) => one.ttft.p50)
    bars.push({ name: 'added time to first token at 1 stream, p50', bar: '≤ 5 ms', measured: `${round(added)} ms`, held: added <= 5 })
  }
  if (find('full tier', 200, 'spread').length > 0) {
    const ratio = middle('full tier', 200, 'spread', (one) => one.rate) / middle('provider', 200, 'spread', (one) => one.rate)
    const ttft = middle('full tier', 200, 'spread', (one) => one.ttft.p50) / middle('provider', 200, 'spread', (one) => one.ttft.p50)
    const cpu = middle('full tier', 200, 'spread', (one) => one.cpuMs['server'] ?? Number.NaN)
    bars.push({ name: 'rate at 200 streams', bar: '≥ 0.97 of the provider’s', measured: String(round(ratio, 3)), held: ratio >= 0.97 })
    bars.push({
      name: 'time to first token at 200 streams, p50',
      bar: '≤ 2 × the provider’s',
      measured: `${round(ttft)} ×`,
      held: ttft <= 2,
    })
    bars.push({ name: 'CPU of the server a stream at 200', bar: '≤ 6 ms', measured: `${round(cpu)} ms`, held: cpu <= 6 })
  }
  const full = figures.filter((one) => one.target === 'full tier')
  if (full.length > 0) {
    const lost = full.reduce((sum, one) => sum + one.lost, 0)
    const wrong = full.reduce((sum, one) => sum + one.wrong, 0)
    bars.push({ name: 'streams lost or wrong', bar: '0', measured: `${lost} lost, ${wrong} wrong`, held: lost + wrong === 0 })
  }
  return bars
}
