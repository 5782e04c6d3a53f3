/**
 * `npm run bench -- NAME [--check] [options of that bench]`: measures, writes its figures to docs/benchmarks, and with --check ends with 1
 * where a bar is missed. Without a name it tells which there are.
 */
import type { Bench } from './support/bench.ts'

/** By name; each is loaded when it is asked for. */
const benches: Readonly<Record<string, () => Promise<{ bench: Bench }>>> = {
  memory: () => import('./memory-quality.ts'),
  stream: () => import('./stream.ts'),
}

const [name = '', ...args] = process.argv.slice(2)
const load = Object.hasOwn(benches, name) ? benches[name] : undefined
if (!load) {
  process.stderr.write(`npm run bench -- NAME [--check]\nNAME is one of: ${Object.keys(benches).join(', ')}\n`)
  process.exit(2)
}
const { bench } = await load()
const bars = await bench({ args: args.filter((arg) => arg !== '--check'), say: (line) => void process.stdout.write(`${line}\n`) })
for (const bar of bars) process.stdout.write(`${bar.held ? 'held  ' : 'MISSED'} ${bar.name}: ${bar.measured} (bar: ${bar.bar})\n`)
process.exit(args.includes('--check') && bars.some((bar) => !bar.held) ? 1 : 0)
