/** What was canonized is remembered once, or given up where everybody can see it (decision 28). */
import type { Played } from './round.ts'
import type { Stage } from './stage.ts'

type Row = { id: string; jobs: number; outcome: string | null; memories: number; given_up: number; finished: number }

export async function checkExtractions(stage: Stage, { household, told }: Played): Promise<string[]> {
  const rows = await stage.observer.database.query<Row>(
    `SELECT c.id,
       (SELECT count(*)::int FROM outbox o WHERE o.payload ->> 'canonization_id' = c.id::text) AS jobs,
       (SELECT max(o.outcome) FROM outbox o WHERE o.payload ->> 'canonization_id' = c.id::text) AS outcome,
       (SELECT count(DISTINCT v.memory_id)::int FROM memory_sources s JOIN memory_versions v ON v.id = s.version_id
        WHERE s.canonization_id = c.id) AS memories,
       (SELECT count(*)::int FROM events e WHERE e.owner_id = c.owner_id AND e.type = 'extraction.given_up'
        AND e.payload ->> 'canonization_id' = c.id::text) AS given_up,
       (SELECT count(*)::int FROM events e WHERE e.owner_id = c.owner_id AND e.type = 'extraction.finished'
        AND e.payload ->> 'canonization_id' = c.id::text) AS finished
     FROM canonizations c WHERE c.owner_id = $1::uuid`,
    [household.ownerId],
  )
  const accepted = told.flatMap(({ ask, canonized }) => (canonized?.id ? [{ ask, id: canonized.id }] : []))
  return [
    ...accepted.filter(({ id }) => !rows.some((row) => row.id === id)).map(({ ask }) => `the canonization of ${ask.id} is lost`),
    ...rows.filter(({ id }) => !accepted.some((one) => one.id === id)).map(({ id }) => `canonization ${id} was asked for by nobody`),
    ...rows.flatMap((row) => {
      const isDone = row.outcome === 'done' && row.memories === 1 && row.finished === 1 && row.given_up === 0
      const isGivenUp = row.outcome === 'given_up' && row.memories === 0 && row.finished === 0 && row.given_up === 1
      return row.jobs === 1 && (isDone || isGivenUp) ? [] : [`extraction: ${JSON.stringify(row)}`]
    }),
  ]
}
