/** A wake-up for an outbox row. The row in Postgres decides what is to be done and whether it was done (decision 28). */
export type JobWake = { outboxId: string; dueAt?: Date }

/** Carries wake-ups to a worker: in process on the light tier, BullMQ on the full one. Doubles and losses are harmless; a sweeper re-wakes. */
export interface JobQueue {
  wake(job: JobWake): Promise<void>
  /** Starts working; at most `concurrency` rows at once in this process. The handler never throws for a job's own failure. */
  work(handler: (outboxId: string) => Promise<void>, concurrency: number): Promise<void>
  close(): Promise<void>
}
