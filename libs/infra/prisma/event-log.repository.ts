import { PROTOCOL_VERSION } from '#contracts'
import type { EventType } from '#contracts'
import { StaleHeadError, StreamQuarantinedError } from '#kernel/ports/event-log'
import type { EventLog, FencedAppend, GlobalCursor, GlobalPage, StoredEvent, StreamAppend } from '#kernel/ports/event-log'
import { chainEvents } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import { readRecord } from '#kernel/record/read-record'
import type { Database } from './database.ts'

/** How long an owner keeps a run without a sign of life (decision 22). */
export const LEASE_SECONDS = 15
/** An append leaves a lease alone that lasts this long anyway: the column is indexed, so that each change of it costs every index of the row. */
const LEASE_KEPT_SECONDS = 12

/** A reader that waits longer than this for one transaction is worth a word (decision 19). */
const HELD_ALERT_MS = 10_000

/** What holds a reader of the global order back: the position that it stands before, and for how long. */
export type HeldReader = { position: number; heldMs: number }

type EventRow = { position: number; canonical: string; prev_hash: Uint8Array; hash: Uint8Array }

/** The log in Postgres: `events` and `streams` (decisions 8, 12, 16–18). */
export class EventLogRepository implements EventLog {
  readonly #database: Database
  readonly #onHeld: (held: HeldReader) => void
  #alerted = ''

  /** `onHeld` is told once of each transaction that holds a reader of the global order back for long. */
  constructor(database: Database, { onHeld = () => undefined }: { onHeld?: (held: HeldReader) => void } = {}) {
    this.#database = database
    this.#onHeld = onHeld
  }

  async append(...appends: readonly StreamAppend[]): Promise<ChainedEvent[]> {
    const streams = appends.map((append) => append.stream)
    // Sent together: the second waits in the database for the first, not here. Both lock in the order of the names.
    const [, rows, ...events] = await Promise.all([
      this.#database.execute(createStreamsSql, [streams, appends.map((append) => append.ownerId)]),
      this.#database.query<StreamHead & { stream: string; quarantined: boolean }>(
        `SELECT stream, seq, hash, quarantined_at IS NOT NULL AS quarantined FROM streams WHERE stream = ANY ($1::text[])
         ORDER BY stream FOR UPDATE`,
        [streams],
      ),
      ...appends.map((append) => append.events),
    ])
    const heads = new Map(rows.map((row) => [row.stream, row]))
    const chained = appends.flatMap(({ stream, ownerId }, index) => {
      const head = heads.get(stream)
      if (!head || head.quarantined) throw new StreamQuarantinedError(stream)
      return chainEvents({ stream, ownerId, head, events: events[index] ?? [] }).chained
    })
    await this.write(chained)
    return chained
  }

  async write(events: readonly ChainedEvent[]): Promise<void> {
    if (events.length === 0) return
    const ends = new Map<string, { first: ChainedEvent; last: ChainedEvent }>()
    for (const event of events) ends.set(event.stream, { first: ends.get(event.stream)?.first ?? event, last: event })
    const moves = [...ends.values()]
    const written = await this.#database.execute(writeSql, [
      ...eventColumns(events),
      moves.map(({ first }) => first.stream),
      moves.map(({ first }) => first.seq - 1),
      moves.map(({ first }) => hex(first.prev_hash)),
      moves.map(({ last }) => last.seq),
      moves.map(({ last }) => hex(last.hash)),
    ])
    if (written !== events.length) throw new StaleHeadError([...ends.keys()].join(', '))
  }

  async appendFenced(batch: readonly FencedAppend[]): Promise<Set<string>> {
    const events = batch.flatMap((append) => append.events)
    if (events.length === 0) return new Set(batch.map((append) => append.runId))
    const segments = batch.flatMap((append) => append.segments)
    const moves = batch.flatMap(({ runId, fence, events: own }) => {
      const [first, last] = [own[0], own.at(-1)]
      return first && last ? [{ runId, fence, first, last }] : []
    })
    const rows = await this.#database.direct<{ run_id: string }>(appendFencedSql, [
      ...eventColumns(events),
      moves.map((move) => move.runId),
      moves.map((move) => move.fence),
      moves.map((move) => move.first.stream),
      moves.map((move) => move.first.seq - 1),
      moves.map((move) => hex(move.first.prev_hash)),
      moves.map((move) => move.last.seq),
      moves.map((move) => hex(move.last.hash)),
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

  async readGlobal({ after, limit = 1_000 }: { after: GlobalCursor; limit?: number }): Promise<GlobalPage> {
    const page = await this.#readGlobal(after, limit)
    // A gap that nobody is about to fill is passed at once: the horizon that was just taken is settled by now.
    const isFresh = page.events.length === 0 && page.next.horizon !== null && page.next.horizon !== after.horizon
    return isFresh ? this.#readGlobal(page.next, limit) : page
  }

  async #readGlobal(after: GlobalCursor, limit: number): Promise<GlobalPage> {
    const { position, horizon } = after
    const rows = await this.#database.query<GlobalRow>(readGlobalSql, [
      position,
      horizon?.position ?? 0,
      horizon?.epoch ?? 0,
      horizon?.xid ?? '0',
      horizon?.since ?? null,
      limit,
    ])
    const events = rows.flatMap(({ position: at, canonical, prev_hash, hash }) =>
      at === null || canonical === null || prev_hash === null || hash === null
        ? []
        : storedEvent({ position: at, canonical, prev_hash, hash }),
    )
    const [first] = rows
    const isWaiting = horizon !== null && first?.settled !== true
    const next = { position: events.at(-1)?.position ?? position, horizon: isWaiting ? horizon : (first?.newest ?? null) }
    const heldMs = isWaiting && events.length === 0 ? Math.max(0, first?.held_ms ?? 0) : 0
    if (isWaiting && heldMs > HELD_ALERT_MS && this.#alerted !== horizon.xid) {
      this.#alerted = horizon.xid
      this.#onHeld({ position, heldMs })
    }
    return { events, next, heldMs }
  }
}

type GlobalRow = {
  settled: boolean
  newest: GlobalCursor['horizon']
  held_ms: number
  position: number | null
  canonical: string | null
  prev_hash: Uint8Array | null
  hash: Uint8Array | null
}

/** Parses a row; the canonical bytes are the truth. */
export function storedEvent(row: EventRow): StoredEvent {
  return { ...row, record: readRecord(JSON.parse(row.canonical)) }
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

const createStreamsSql = `
INSERT INTO streams (stream, owner_id)
SELECT s.stream, s.owner_id FROM unnest($1::text[], $2::uuid[]) AS s(stream, owner_id) ORDER BY s.stream
ON CONFLICT DO NOTHING`

/** Moves heads and writes the events after them; nothing of a stream whose head is elsewhere. */
const writeSql = `
WITH moved AS (
  UPDATE streams s SET seq = m.seq_after, hash = decode(m.hash_after, 'hex')
  FROM unnest($10::text[], $11::bigint[], $12::text[], $13::bigint[], $14::text[]) AS m(stream, seq_before, hash_before, seq_after, hash_after)
  WHERE s.stream = m.stream AND s.seq = m.seq_before AND s.hash = decode(m.hash_before, 'hex') AND s.quarantined_at IS NULL
  RETURNING s.stream
)
INSERT INTO events (cluster_epoch, stream, seq, type, visibility, owner_id, run_id, canonical, payload, prev_hash, hash)
SELECT (SELECT cluster_epoch FROM instance), e.stream, e.seq, e.type, e.visibility, e.owner_id, e.run_id, e.canonical,
       e.canonical::jsonb -> 'payload', decode(e.prev_hash, 'hex'), decode(e.hash, 'hex')
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::text[])
  AS e(stream, seq, type, visibility, owner_id, run_id, canonical, prev_hash, hash)
WHERE (e.stream IN (SELECT stream FROM moved)) IS TRUE
ORDER BY e.stream, e.seq`

/**
 * One statement for many runs: locks in id order, heads must be where each run believes them, the kill switch is read in the same join,
 * every allowed run's lease is extended by its own append (decisions 17, 18, 22). Each input is joined once, to a table by its key, and the
 * sets of what was allowed are looked up and not joined (`IS TRUE` keeps them so): the plan is right for one row and for hundreds.
 */
const appendFencedSql = `
WITH allowed AS (
  SELECT m.* FROM unnest($10::uuid[], $11::bigint[], $12::text[], $13::bigint[], $14::text[], $15::bigint[], $16::text[])
    AS m(run_id, fence, stream, seq_before, hash_before, seq_after, hash_after)
  JOIN runs r ON r.id = m.run_id AND r.fence = m.fence
  WHERE r.state = 'running' AND r.protocol_version = ${PROTOCOL_VERSION} AND NOT EXISTS (
    SELECT 1 FROM kill_flags k
    WHERE k.scope = 'global' OR (k.scope = 'owner' AND k.scope_id = r.owner_id) OR (k.scope = 'character' AND k.scope_id = r.character_id))
  ORDER BY r.id FOR UPDATE OF r
), heads AS (
  UPDATE streams s SET seq = a.seq_after, hash = decode(a.hash_after, 'hex')
  FROM allowed a
  WHERE s.stream = a.stream AND s.seq = a.seq_before AND s.hash = decode(a.hash_before, 'hex') AND s.quarantined_at IS NULL
  RETURNING s.stream, a.run_id
), lease AS (
  UPDATE runs r SET lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds' FROM heads h
  WHERE r.id = h.run_id AND r.lease_until < clock_timestamp() + interval '${LEASE_KEPT_SECONDS} seconds'
), written AS (
  INSERT INTO events (cluster_epoch, stream, seq, type, visibility, owner_id, run_id, canonical, payload, prev_hash, hash)
  SELECT (SELECT cluster_epoch FROM instance), e.stream, e.seq, e.type, e.visibility, e.owner_id, e.run_id, e.canonical,
         e.canonical::jsonb -> 'payload', decode(e.prev_hash, 'hex'), decode(e.hash, 'hex')
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::text[])
    AS e(stream, seq, type, visibility, owner_id, run_id, canonical, prev_hash, hash)
  WHERE (e.stream IN (SELECT stream FROM heads)) IS TRUE
  ORDER BY e.stream, e.seq
), deltas AS (
  INSERT INTO segments (run_id, ordinal, part, kind, body, salt)
  SELECT d.run_id, d.ordinal, d.part, d.kind, d.body, decode(d.salt, 'hex')
  FROM unnest($17::uuid[], $18::int[], $19::int[], $20::text[], $21::text[], $22::text[]) AS d(run_id, ordinal, part, kind, body, salt)
  WHERE (d.run_id IN (SELECT run_id FROM heads)) IS TRUE
)
SELECT run_id FROM heads`

/**
 * One statement, so one snapshot. A row may be delivered when nothing can come before it any more: when it follows on the cursor without
 * a gap; when it, or a row after it, is of an older epoch; or when it lies within a horizon that is settled, since every transaction that
 * took a position up to there had its xid before the horizon's. A position's taker has its xid first: no event is inserted whose stream's
 * head was not moved before in the same transaction.
 *
 * `newest` is the horizon to wait for where a gap stops the reader. Its xid is one of our own, taken after the snapshot: the snapshot's
 * xmax will not do, since transactions that have begun already may lie beyond it.
 */
const readGlobalSql = `
WITH state AS (
  SELECT i.cluster_epoch AS epoch, clock_timestamp() AS at,
         $3::integer > 0 AND ($3::integer < i.cluster_epoch OR $4::text::xid8 <= pg_snapshot_xmin(pg_current_snapshot())) AS settled
  FROM instance i LIMIT 1 -- one row, which the planner does not know
), page AS (
  SELECT e.*, row_number() OVER (ORDER BY e.position) AS place
  FROM (
    SELECT position, cluster_epoch, canonical, prev_hash, hash FROM events WHERE position > $1::bigint ORDER BY position LIMIT $6
  ) e
), old AS (
  SELECT coalesce(max(p.position), 0) AS position FROM page p, state s WHERE p.cluster_epoch < s.epoch
), deliverable AS (
  SELECT p.* FROM page p, state s, old o
  WHERE p.position = $1::bigint + p.place OR p.position <= o.position OR (s.settled AND p.position <= $2::bigint)
)
SELECT s.settled,
       CASE WHEN (s.settled OR $3::integer = 0) AND (SELECT count(*) FROM page) > (SELECT count(*) FROM deliverable) THEN
         jsonb_build_object('position', (SELECT max(position) FROM events), 'epoch', s.epoch, 'xid', pg_current_xact_id()::text, 'since', s.at)
       END AS newest,
       coalesce(extract(epoch FROM s.at - $5::timestamptz) * 1000, 0)::double precision AS held_ms,
       d.position, d.canonical, d.prev_hash, d.hash
FROM state s LEFT JOIN deliverable d ON true
ORDER BY d.position`
