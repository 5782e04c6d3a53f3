/** One life of the database worker, seen from the main thread. */
import { Worker } from 'node:worker_threads'
import { siblingEntry } from './sibling-entry.ts'
import type { FromWorker, ToWorker, WorkerTask } from './worker-messages.ts'

/** With the default of 4 MB, deep recursion overflows the thread's stack before Postgres' own check of 2 MB can refuse it. */
const STACK_MB = 16

export interface WorkerThread {
  /** Settles when the worker is gone, with the reason. */
  readonly gone: Promise<string>
  /** Asks the worker to checkpoint and end; resolves when it has, or is gone. */
  close(): Promise<void>
  /** Ends it wherever it stands; committed data is safe. */
  terminate(): Promise<void>
}

/** Starts the worker and resolves when clients can connect. Throws why it could not start. */
export async function startWorkerThread(task: WorkerTask, onMessage: (message: FromWorker) => void): Promise<WorkerThread> {
  const worker = new Worker(siblingEntry('database-worker', import.meta.url), {
    workerData: task,
    resourceLimits: { stackSizeMb: STACK_MB },
    // Not the parent's flags and arguments: a test runner's loader has no business in there.
    execArgv: [],
    argv: [],
  })
  const ready = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<string>()
  let failure: Error | undefined
  let lastWord: string | undefined
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'ready') ready.resolve()
    else if (message.kind === 'closed') closed.resolve()
    else if (message.kind === 'trap') lastWord = message.reason
    else onMessage(message)
  })
  worker.on('error', (error) => {
    failure = error instanceof Error ? error : new Error(String(error))
  })
  worker.on('exit', (code) => {
    const reason = lastWord ?? failure?.message ?? `the worker ended with code ${code}`
    ready.reject(failure ?? new Error(reason))
    closed.resolve()
    gone.resolve(reason)
  })
  await ready.promise
  return {
    gone: gone.promise,
    close: async () => {
      const message: ToWorker = { kind: 'close' }
      worker.postMessage(message)
      await closed.promise
      await worker.terminate()
    },
    terminate: async () => {
      await worker.terminate()
    },
  }
}
