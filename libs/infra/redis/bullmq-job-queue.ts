import { Queue, Worker } from 'bullmq'
import type { ConnectionOptions } from 'bullmq'
import type { JobQueue, JobWake } from '#kernel/ports/job-queue'

/**
 * Wake-ups for outbox rows over BullMQ. A job carries the row's id and is named by it, so that one row waits once; everything that
 * matters stands in Postgres (decision 28). Our ids hold no `:` and are no bare integers.
 */
export class BullmqJobQueue implements JobQueue {
  readonly #connection: ConnectionOptions
  readonly #prefix: string
  readonly #report: (error: unknown) => void
  readonly #queue: Queue
  #worker: Worker | null = null

  constructor({ connection, prefix, report }: { connection: ConnectionOptions; prefix: string; report: (error: unknown) => void }) {
    this.#connection = connection
    this.#prefix = prefix
    this.#report = report
    this.#queue = new Queue('outbox', { connection, prefix })
    this.#queue.on('error', report)
  }

  async wake({ outboxId, dueAt }: JobWake): Promise<void> {
    const delay = dueAt ? Math.max(0, dueAt.getTime() - Date.now()) : 0
    try {
      await this.#queue.add('row', { outboxId }, { jobId: `row-${outboxId}`, delay, removeOnComplete: true, removeOnFail: true })
    } catch (error) {
      // The row stays open in Postgres, and the sweeper wakes it again.
      this.#report(error)
    }
  }

  async work(handler: (outboxId: string) => Promise<void>, concurrency: number): Promise<void> {
    this.#worker = new Worker<{ outboxId: string }>('outbox', (job) => handler(job.data.outboxId), {
      connection: this.#connection,
      prefix: this.#prefix,
      concurrency,
    })
    this.#worker.on('error', this.#report)
    this.#worker.on('failed', (_job, error) => this.#report(error))
    await this.#worker.waitUntilReady()
  }

  async close(): Promise<void> {
    await this.#worker?.close()
    await this.#queue.close()
  }
}
