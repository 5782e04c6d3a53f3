import variant from '@jitl/quickjs-singlefile-mjs-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'
import type { QuickJSContext, QuickJSHandle } from 'quickjs-emscripten-core'

/** Limits of one script: milliseconds, bytes, UTF-16 units. */
export type ScriptLimits = { timeMs: number; memoryBytes: number; outputUnits: number }

/** How a script ended. `output` is what it printed; `truncated`: output or result went beyond the limit. */
export type ScriptEnd = {
  type: 'finished' | 'threw' | 'time_limit' | 'memory_limit' | 'output_limit' | 'unsettled'
  output: string
  /** The value of the last statement, or of the promise that it is, as JSON; the error of one that threw. */
  result: string | null
  truncated: boolean
}

/** The platform's, which the compiler's settings for a server leave out. */
declare const WebAssembly: { Memory: new (pages: { initial: number; maximum: number }) => object }

const STACK_BYTES = 512 * 1024
const OUT_OF_MEMORY = 'InternalError: out of memory'
const PAGE_BYTES = 64 * 1024
/** What the build of QuickJS begins with: its own data and stack. */
const FIRST_PAGES = 256

/**
 * Runs JavaScript in a fresh QuickJS inside WebAssembly: no host function but `console`, no modules, no timers. Blocks its thread for as
 * long as the script runs; the time limit is looked at between the interpreter's steps, so whoever calls this must be ready to end the
 * thread as well.
 */
export async function runScript(
  code: string,
  { limits, now, onStart }: { limits: ScriptLimits; now: () => number; onStart: () => void },
): Promise<ScriptEnd> {
  // The bound on memory is WebAssembly's own: QuickJS's does not count in this build (a script got 2 GB past it).
  const wasmMemory = new WebAssembly.Memory({ initial: FIRST_PAGES, maximum: Math.floor(limits.memoryBytes / PAGE_BYTES) })
  const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory }))
  const runtime = quickjs.newRuntime()
  runtime.setMaxStackSize(STACK_BYTES)
  onStart()
  const deadline = now() + limits.timeMs
  const printed = new Printed(limits.outputUnits)
  let stopped: 'time_limit' | 'output_limit' | null = null
  runtime.setInterruptHandler(() => {
    if (printed.isFull) stopped ??= 'output_limit'
    else if (now() > deadline) stopped ??= 'time_limit'
    return stopped !== null
  })
  const context = runtime.newContext()
  installConsole(context, printed)
  const ended = evaluate(context, code)
  const text = ended.handle === null || typeof ended.handle === 'string' ? ended.handle : describe(context, ended.handle)
  const type = stopped ?? (ended.type === 'threw' && isOutOfMemory(text) ? 'memory_limit' : ended.type)
  // The heap goes with the thread: freeing what a script left behind, whatever state it is in, has nothing to give.
  const room = Math.max(0, limits.outputUnits - printed.text.length)
  const result = text === null || stopped !== null ? null : text.slice(0, room).toWellFormed()
  return {
    type,
    output: printed.text.toWellFormed(),
    result,
    truncated: printed.isFull || (result !== null && result.length < (text ?? '').length),
  }
}

/** What was printed, up to a limit. */
class Printed {
  text = ''
  isFull = false
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  add(line: string): void {
    this.text += `${line.slice(0, this.#limit - this.text.length)}\n`
    if (this.text.length < this.#limit) return
    this.text = this.text.slice(0, this.#limit)
    this.isFull = true
  }
}

function installConsole(context: QuickJSContext, printed: Printed): void {
  const print = context.newFunction('print', (...values) => {
    if (!printed.isFull) printed.add(values.map((value) => describe(context, value)).join(' '))
    return context.undefined
  })
  const console = context.newObject()
  for (const name of ['log', 'info', 'warn', 'error', 'debug']) context.setProp(console, name, print)
  context.setProp(context.global, 'console', console)
}

type Ended = { type: 'finished' | 'threw' | 'unsettled'; handle: QuickJSHandle | string | null }

function evaluate(context: QuickJSContext, code: string): Ended {
  try {
    const evaluated = context.evalCode(code, 'script.js', { type: 'global' })
    if (evaluated.error) return { type: 'threw', handle: evaluated.error }
    const jobs = context.runtime.executePendingJobs()
    if (jobs.error) return { type: 'threw', handle: jobs.error }
    const state = context.getPromiseState(evaluated.value)
    if (state.type === 'pending') return { type: 'unsettled', handle: null }
    return state.type === 'rejected' ? { type: 'threw', handle: state.error } : { type: 'finished', handle: state.value }
  } catch (error) {
    // The WebAssembly itself gave up: its stack or its memory ran out where the interpreter does not look.
    return { type: 'threw', handle: error instanceof RangeError ? 'RangeError: out of stack' : OUT_OF_MEMORY }
  }
}

/** A value as people read it: text as it is, errors by name and message, everything else as JSON. */
function describe(context: QuickJSContext, handle: QuickJSHandle): string {
  try {
    const value: unknown = context.dump(handle)
    if (typeof value === 'string') return value
    if (typeof value === 'object' && value !== null && 'message' in value && 'name' in value)
      return `${String(value.name)}: ${String(value.message)}`
    if (typeof value === 'bigint' || typeof value === 'undefined' || typeof value === 'symbol' || typeof value === 'function')
      return String(value)
    return JSON.stringify(value)
  } catch (error) {
    return `(cannot be shown: ${error instanceof Error ? error.message : String(error)})`
  }
}

function isOutOfMemory(text: string | null): boolean {
  return text === 'null' || text === OUT_OF_MEMORY
}
