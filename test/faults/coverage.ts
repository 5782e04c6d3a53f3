import type { Played } from './round.ts'
import type { Stage } from './stage.ts'

/** Ends of runs and effects that only a well-aimed kill or a hostile world outside leads to. */
const wanted = [
  'run interrupted',
  'run finished',
  'run suspended',
  'effect done',
  'effect unknown or settled',
  'effect failed',
  'job after a kill',
]

/** What all rounds together have hit: a suite whose kills hit nothing proves nothing. */
export class Coverage {
  readonly #counts = new Map<string, number>()
  #missed = 0

  async note(stage: Stage, { household, killed }: Played): Promise<void> {
    if (!killed.seen) this.#missed += 1
    const { database } = stage.observer
    const rows = await database.query<{ what: string; count: number }>(
      `SELECT 'run ' || state AS what, count(*)::int AS count FROM runs WHERE owner_id = $1::uuid GROUP BY state
       UNION ALL SELECT 'maintenance run interrupted', count(*)::int FROM runs
         WHERE owner_id = $1::uuid AND kind = 'maintenance' AND state = 'interrupted'
       UNION ALL SELECT 'effect ' || CASE WHEN state IN ('unknown', 'reconciled_done', 'reconciled_failed') THEN 'unknown or settled'
         ELSE state END, count(*)::int FROM effects WHERE owner_id = $1::uuid GROUP BY 1
       UNION ALL SELECT 'job after a kill', count(*)::int FROM outbox WHERE owner_id = $1::uuid AND attempts > 1
       UNION ALL SELECT 'memory', count(*)::int FROM memories WHERE owner_id = $1::uuid`,
      [household.ownerId],
    )
    for (const { what, count } of rows) this.#counts.set(what, (this.#counts.get(what) ?? 0) + count)
  }

  told(): string {
    const lines = [...this.#counts].toSorted().map(([what, count]) => `  ${what}: ${count}`)
    return `What the rounds came to:\n${lines.join('\n')}\n  kills whose moment did not come: ${this.#missed}`
  }

  missing(): string[] {
    return wanted.filter((what) => (this.#counts.get(what) ?? 0) === 0)
  }
}
