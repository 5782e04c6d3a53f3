import type { Logger } from 'pino'
import type { Role } from '#infra/config/config'
import type { ReadinessCheck } from '../operations/operations.controller.ts'

/** Work that goes on beside requests: whose it is (`any`: every process does it), and how it begins. What `start` answers ends it. */
export type BackgroundWork = { name: string; role: 'bff' | 'worker' | 'any'; start: () => Promise<() => Promise<void>> }

/** How a system's parts begin, are asked whether they work, and end: last in, first out. */
export class Lifecycle {
  readonly #logger: Logger
  readonly #stopping = new AbortController()
  readonly #closers: { name: string; close: () => Promise<void> }[] = []
  readonly #work: BackgroundWork[] = []
  readonly readiness: ReadinessCheck[] = []
  readonly #failed = Promise.withResolvers<never>()
  #closed: Promise<void> | undefined

  constructor(logger: Logger) {
    this.#logger = logger
    // Whoever waits on `failure` hears of it; nobody waiting is no unhandled rejection.
    this.#failed.promise.catch(() => undefined)
  }

  /** Aborted when the process is to end: streams end resumably, nothing new begins. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  onClose(name: string, close: () => Promise<void>): void {
    this.#closers.push({ name, close })
  }

  addWork(work: BackgroundWork): void {
    this.#work.push(work)
  }

  addReadiness(check: ReadinessCheck): void {
    this.readiness.push(check)
  }

  /** Starts what this process's role is to do. */
  async startWork(role: Role): Promise<void> {
    for (const work of this.#work) {
      if (role !== 'all' && work.role !== 'any' && role !== work.role) continue
      this.onClose(work.name, await work.start())
    }
  }

  /** Something without which nothing works is gone: whoever runs the process ends it. */
  fail(error: Error): void {
    this.#failed.reject(error)
  }

  /** Rejects once `fail` was called; never resolves. */
  get failure(): Promise<never> {
    return this.#failed.promise
  }

  beginStopping(): void {
    this.#stopping.abort()
  }

  /** Ends every part, each even where another fails. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.beginStopping()
    for (const { name, close } of this.#closers.toReversed()) {
      try {
        await close()
      } catch (error) {
        this.#logger.error({ part: name, err: error }, 'a part did not close cleanly')
      }
    }
  }
}
