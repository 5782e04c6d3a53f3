import { EventRecord } from '#contracts'
import type { EventType, NewEvent } from '#contracts'
import { StaleHeadError, StreamQuarantinedError } from '#kernel/ports/event-log'
import type { EventLog, FencedAppend, StoredEvent } from '#kernel/ports/event-log'
import { chainEvents } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { Database } from './database.ts'

/** How long an owner keeps a run without a sign of life (decision 22). */
export const LEASE_SECONDS = 15

type EventRow = { position: number; canonical: string; prev_hash: Uint8Array; hash: Uint8Array }

/** The log in Postgres: `events` and `streams` (decisions 8, 12, 16–18). */
export class EventLogRepository implements EventLog {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async append({
    stream,
    ownerId,
    events,
  }: {
    stream: string
    ownerId: string | null
    events: readonly NewEvent[]
  }): Promise<ChainedEvent[]> {
    await this.#database.execute('INSERT INTO streams (stream, owner_id) VALUES ($1, $2::uuid) ON CONFLICT DO NOTHING', [stream, ownerId])
    const [head] = await this.#database.query<{ seq: number; hash: Uint8Array; quarantined: boolean }>(
      'SELECT seq, hash, quarantined_at IS NOT NULL AS quarantined FROM streams WHERE stream = $1 FOR UPDATE',
      [stream],
    )
    if (!head || head.quarantined) throw new StreamQuarantinedError(stream)
    const { chained } = chainEvents({ stream, ownerId, head, events })
    await this.write(chained)
    return chained
  }

  async write(events: readonly ChainedEvent[]): Promise<void> {
    const first = events[0]
    const last = events.at(-1)
    if (!first || !last) return
    const moved = await this.#database.execute(
      'UPDATE streams SET seq = $2, hash = $3 WHERE stream = $1 AND seq = $4 AND hash = $5 AND quarantined_at IS NULL',
      [first.stream, last.seq, last.hash, first.seq - 1, first.prev_hash],
    )
    if (moved !== 1) throw new StaleHeadError(first.stream)
    const written = await this.#database.execute(
      `INSERT INTO events (cluster_epoch, stream, seq, type, visibility, owner_id, run_id, canonical, payload, prev_hash, hash)
       SELECT (SELECT cluster_epoch FROM instance), e.stream, e.seq, e.type, e.visibility, e.owner_id, e.run_id, e.canonical,
              e.canonical::jsonb -> 'payload', decode(e.prev_hash, 'hex'), decode(e.hash, 'hex')
       FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::text[])
         AS e(stream, seq, type, visibility, owner_id, run_id, canonical, prev_hash, hash)
       ORDER BY e.seq`,
      eventColumns(events),
    )
    if (written !== events.length) throw new StaleHeadError(first.stream)
  }

  async appendFenced(batch: readonly FencedAppend[]): Promise<Set<string>> {
    const events = batch.flatMap((append) => append.events)
    if (events.length === 0) return new Set(batch.map((append) => append.runId))
    const segments = batch.flatMap((append) => append.segments)
    const rows = await this.#database.direct<{ run_id: string }>(appendFencedSql, [
      ...eventColumns(events),
      batch.map((append) => append.runId),
      batch.map((append) => append.fence),
      segments.map((segment) => segment.run_id),
      segments.map((segment) => segment.ordinal),
      segments.map((segment) => segment.part),
      segments.map((segment) => segment.kind),
      segments.map((segment) => segment.body),
      segments.map((segment) => hex(segment.salt)),
    ])
    return new Set(rows.map((row) => row.run_id))
  }

  async head(stream: string): Promise<(StreamHead & { quarantined: boolean }) | null> {
    const [head] = await this.#database.query<StreamHead & { quarantined: boolean }>(
      'SELECT seq, hash, quarantined_at IS NOT NULL AS quarantined FROM streams WHERE stream = $1',
      [stream],
    )
    return head ?? null
  }

  async read(stream: string, options: { after?: number; limit?: number; types?: readonly EventType[] } = {}): Promise<StoredEvent[]> {
    const rows = await this.#database.query<EventRow>(
      `SELECT position, canonical, prev_hash, hash FROM events
       WHERE stream = $1 AND seq > $2 AND ($3::text[] IS NULL OR type = ANY ($3::text[])) ORDER BY seq LIMIT $4`,
      [stream, options.after ?? 0, options.types ?? null, options.limit ?? 10_000],
    )
    return rows.map(storedEvent)
  }
}

/** Parses a row; the canonical bytes are the truth. */
export function storedEvent(row: EventRow): StoredEvent {
  return { ...row, record: EventRecord.parse(JSON.parse(row.canonical)) }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

function eventColumns(events: readonly ChainedEvent[]) {
  return [
    events.map((event) => event.stream),
    events.map((event) => event.seq),
    events.map((event) => event.type),
    events.map((event) => event.visibility),
    events.map((event) => event.owner_id),
    events.map((event) => event.run_id),
    events.map((event) => event.canonical),
    events.map((event) => hex(event.prev_hash)),
    events.map((event) => hex(event.hash)),
  ]
}

/**
 * One statement for many runs: locks in id order, heads must be where each run believes them, the kill switch is read in the same join,
 * every allowed run's lease is extended by its own append (decisions 17, 18, 22).
 */
const appendFencedSql = `
WITH input AS (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::text[])
    AS e(stream, seq, type, visibility, owner_id, run_id, canonical, prev_hash, hash)
), fences AS (
  SELECT * FROM unnest($10::uuid[], $11::bigint[]) AS f(run_id, fence)
), allowed AS (
  SELECT r.id FROM runs r JOIN fences f ON f.run_id = r.id AND f.fence = r.fence
  WHERE r.state = 'running' AND NOT EXISTS (
    SELECT 1 FROM kill_flags k
    WHERE k.scope = 'global' OR (k.scope = 'owner' AND k.scope_id = r.owner_id) OR (k.scope = 'character' AND k.scope_id = r.character_id))
  ORDER BY r.id FOR UPDATE OF r
), ends AS (
  SELECT stream, run_id, min(seq) AS first_seq, max(seq) AS last_seq FROM input GROUP BY stream, run_id
), heads AS (
  UPDATE streams s SET seq = t.last_seq, hash = decode(last.hash, 'hex')
  FROM ends t
  JOIN allowed a ON a.id = t.run_id
  JOIN input first ON first.stream = t.stream AND first.seq = t.first_seq
  JOIN input last ON last.stream = t.stream AND last.seq = t.last_seq
  WHERE s.stream = t.stream AND s.seq = t.first_seq - 1 AND s.hash = decode(first.prev_hash, 'hex') AND s.quarantined_at IS NULL
  RETURNING s.stream, t.run_id
), lease AS (
  UPDATE runs r SET lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds' FROM heads h WHERE r.id = h.run_id
), written AS (
  INSERT INTO events (cluster_epoch, stream, seq, type, visibility, owner_id, run_id, canonical, payload, prev_hash, hash)
  SELECT (SELECT cluster_epoch FROM instance), e.stream, e.seq, e.type, e.visibility, e.owner_id, e.run_id, e.canonical,
         e.canonical::jsonb -> 'payload', decode(e.prev_hash, 'hex'), decode(e.hash, 'hex')
  FROM input e JOIN heads h USING (stream)
  ORDER BY e.stream, e.seq
), deltas AS (
  INSERT INTO segments (run_id, ordinal, part, kind, body, salt)
  SELECT d.run_id, d.ordinal, d.part, d.kind, d.body, decode(d.salt, 'hex')
  FROM unnest($12::uuid[], $13::int[], $14::int[], $15::text[], $16::text[], $17::text[]) AS d(run_id, ordinal, part, kind, body, salt)
  WHERE d.run_id IN (SELECT run_id FROM heads)
)
SELECT DISTINCT run_id FROM heads`
