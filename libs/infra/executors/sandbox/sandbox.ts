import { Worker } from 'node:worker_threads'
import { siblingEntry } from '#infra/pglite/sibling-entry'
import type { ScriptEnd, ScriptLimits } from './run-script.ts'
import type { FromSandbox, SandboxTask } from './sandbox-worker.ts'

export const SCRIPT_LIMITS: ScriptLimits = { timeMs: 5_000, memoryBytes: 64 * 1024 * 1024, outputUnits: 64 * 1024 }

/** Threads at once, and scripts that may wait for one. */
const THREADS = 2
const WAITING = 16
/** Beyond its time limit a script has this long to notice, in ms. */
const GRACE_MS = 500
/** A thread has this long to start, in ms. */
const START_MS = 15_000

/** Why a script did not come to an end of its own. */
export type SandboxFault = 'busy' | 'aborted' | 'time_limit' | 'memory_limit' | 'thread_broke'

/** Runs scripts in threads of their own, so that nothing that they do blocks the event loop; each thread is used once. */
export class Sandbox {
  readonly #limits: ScriptLimits
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(limits: ScriptLimits = SCRIPT_LIMITS) {
    this.#limits = limits
  }

  async run(code: string, signal: AbortSignal): Promise<ScriptEnd | SandboxFault> {
    if (signal.aborted) return 'aborted'
    if (this.#running >= THREADS) {
      if (this.#waiting.length >= WAITING) return 'busy'
      const turn = Promise.withResolvers<void>()
      this.#waiting.push(turn.resolve)
      await turn.promise
    }
    this.#running++
    try {
      return signal.aborted ? 'aborted' : await this.#inThread(code, signal)
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }

  async #inThread(code: string, signal: AbortSignal): Promise<ScriptEnd | SandboxFault> {
    const task: SandboxTask = { code, limits: this.#limits }
    const worker = new Worker(siblingEntry('sandbox-worker', import.meta.url), {
      workerData: task,
      // Nothing of this process goes with it; what is around the WebAssembly is small.
      env: {},
      argv: [],
      execArgv: [],
      stdin: false,
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 16 },
    })
    const ended = Promise.withResolvers<ScriptEnd | SandboxFault>()
    const onAbort = (): void => ended.resolve('aborted')
    let overtime = setTimeout(() => ended.resolve('thread_broke'), START_MS)
    signal.addEventListener('abort', onAbort, { once: true })
    worker.on('message', (message: FromSandbox) => {
      if (message.type !== 'started') return ended.resolve(message)
      clearTimeout(overtime)
      overtime = setTimeout(() => ended.resolve('time_limit'), this.#limits.timeMs + GRACE_MS)
    })
    worker.on('error', (error) =>
      ended.resolve('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory_limit' : 'thread_broke'),
    )
    worker.on('exit', () => ended.resolve('thread_broke'))
    try {
      return await ended.promise
    } finally {
      clearTimeout(overtime)
      signal.removeEventListener('abort', onAbort)
      await worker.terminate()
    }
  }
}
