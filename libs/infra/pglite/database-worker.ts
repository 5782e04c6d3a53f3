/** The database worker: a thread with the backend and its socket front, so that WebAssembly never blocks the thread that streams. */
import { parentPort, workerData } from 'node:worker_threads'
import { openBackend } from './backend.ts'
import { DatabaseFront } from './database-front.ts'
import { Maintenance } from './maintenance.ts'
import { SharedCounters } from './shared-counters.ts'
import type { FromWorker, ToWorker, WorkerTask } from './worker-messages.ts'

const TICK_MS = 1_000

/** How often the worker shows that it lives and looks for a cut-off transaction, within the time after which it counts as stuck. */
const LOOKS_PER_LIMIT = 30

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('the database worker runs as a worker thread')
  const tell = (message: FromWorker): void => port.postMessage(message)
  const task = workerData as WorkerTask
  const counters = new SharedCounters(task.counters)
  const now = (): number => performance.now()

  const backend = await openBackend({
    folder: task.folder,
    settings: task.settings,
    onFsync: () => counters.countFsync(),
    onTrap: (error) => {
      tell({ kind: 'trap', reason: String(error) })
      return process.exit(1)
    },
  })
  const front = new DatabaseFront({ backend, now })
  await front.listen(task.socketPath)

  const maintenance = new Maintenance({ backend, front, now })
  const upkeep = setInterval(() => {
    maintenance.tick().catch((error: unknown) => tell({ kind: 'maintenance_failed', reason: String(error) }))
  }, TICK_MS)
  const lookout = setInterval(() => {
    counters.beat()
    const unusedMs = front.cutIdleHolder(task.stuckAfterMs)
    if (unusedMs !== undefined) tell({ kind: 'transaction_cut', unusedMs })
  }, task.stuckAfterMs / LOOKS_PER_LIMIT)

  const close = async (): Promise<void> => {
    clearInterval(upkeep)
    clearInterval(lookout)
    front.close()
    await backend.close()
    tell({ kind: 'closed' })
    port.close()
  }
  port.on('message', (message: ToWorker) => {
    if (message.kind === 'close') void close()
  })
  tell({ kind: 'ready' })
}

await main()
