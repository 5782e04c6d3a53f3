import type { CapabilitySet } from '#contracts'
import type { RuntimeAdapter } from '#domains/tasks/attempt-keeper'
import type { LoopedAttempts } from '#domains/tasks/attempt-sweeper'
import type { AttemptRow } from '#kernel/ports/task-store'

/** Whoever submits actions through the API: what it does with what it learns there, nobody here knows. */
const external: CapabilitySet = {
  structured_events: 'yes',
  pause_for_approval: 'yes',
  resume: 'checkpoint',
  cancel: 'cooperative',
  artifact_export: ['text/plain', 'text/markdown', 'application/json'],
  workspace_isolation: 'unknown',
  raw_event_provenance: 'unknown',
}

export type Runtimes = {
  adapters: readonly RuntimeAdapter[]
  schedule(attempt: AttemptRow): Promise<void>
  connect(): LoopedAttempts & { stop(): void }
}

/** Who can carry attempts out (`003…` §5). */
export function composeRuntimes(): Runtimes {
  return {
    adapters: [{ runtime: 'external', version: '1', available: true, capabilities: external }],
    schedule: () => Promise.resolve(),
    connect: () => ({ drive: () => Promise.resolve(), conclude: () => Promise.resolve(), stop: () => undefined }),
  }
}
