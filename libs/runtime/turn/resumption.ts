import type { EventPayload, EventRecord } from '#contracts'
import type { CheckpointStore } from '#kernel/ports/approval-store'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { contextTrust } from './context-trust.ts'
import { insertsOfRun } from './inheritance.ts'
import type { RunResumption } from './run-deps.ts'

/**
 * Where a run that was suspended goes on: its newest checkpoint, and what its record shows (`003…` §4). Null for a run that never stopped to
 * wait. What it was pinned to at its start stays (decision 21).
 */
export async function resumptionOf(
  run: RunRow,
  records: readonly EventRecord[],
  deps: { log: EventLog; contents: ContentStore; runs: RunStore; actions: { checkpoints: CheckpointStore } },
): Promise<RunResumption | null> {
  const started = records.find(({ type }) => type === 'run.started')
  if (!started || !records.some(({ type }) => type === 'run.suspended')) return null
  const checkpoint = await deps.actions.checkpoints.latest(run.id)
  if (!checkpoint || run.profile_version_id === null) return null
  const { profile_hash: profileHash, bundle } = started.payload as EventPayload<'run.started'>
  return {
    checkpoint,
    pin: {
      personaVersionId: run.persona_version_id,
      profileVersionId: run.profile_version_id,
      profileHash,
      bundle,
      limits: checkpoint.state.limits,
    },
    segments: await deps.runs.segments(run.id),
    inserts: await insertsOfRun(run, records, deps),
    trust: contextTrust(records) ?? 'untrusted',
  }
}
