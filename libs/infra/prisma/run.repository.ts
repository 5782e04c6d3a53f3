import type { SegmentRow } from '#kernel/ports/event-log'
import { LingtaiError, PROTOCOL_VERSION } from '#contracts'
import { REDUCER_VERSION } from '#kernel/reducer/state'
import { CURRENT_LAYOUT } from '#runtime/projection/layouts'
import type { NewRun, RunCommandRow, RunRow, RunStore } from '#kernel/ports/run-store'
import type { Database } from './database.ts'
import { LEASE_SECONDS } from './event-log.repository.ts'
import { RowCountError } from './tree.repository.ts'

const columns = `r.id, r.owner_id, r.kind, r.seated, r.character_id, r.tree_id, r.question_id, r.candidate_id, r.continues_run_id, r.state, r.reason, r.ticket,
  r.queue_expires_at, r.fence, r.holder, r.persona_version_id, r.profile_version_id, r.trace_id, r.settings, r.requested_at, r.started_at, r.ended_at`
/** A run of another version of the protocol is left to whoever has that (K7, decision 21). */
const ours = `protocol_version = ${PROTOCOL_VERSION}`
/** Nor does a run begin here while the active bundle is for a release that this process is not (decision 21). */
const canBegin = `(started_at IS NOT NULL OR NOT EXISTS (
  SELECT 1 FROM (SELECT to_hash FROM bundle_promotions ORDER BY seq DESC LIMIT 1) a JOIN bundles b ON b.hash = a.to_hash
  WHERE (b.content::jsonb ->> 'protocol_version')::int <> ${PROTOCOL_VERSION}
     OR (b.content::jsonb ->> 'layout_version')::int > ${CURRENT_LAYOUT} OR (b.content::jsonb ->> 'reducer_version')::int > ${REDUCER_VERSION}))`
const lease = `clock_timestamp() + interval '${LEASE_SECONDS} seconds'`

/** How many seated runs of a character come before a ticket. */
function aheadSql(characterId: string, ticket: string): string {
  return `SELECT count(*)::int AS count FROM runs b
    WHERE b.character_id = ${characterId} AND b.seated AND (b.state = 'running' OR (b.state = 'queued' AND b.ticket < ${ticket}))`
}

/** Runs in Postgres: seat, queue, fence, lease and commands (decisions 16, 22, 23). */
export class RunRepository implements RunStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(run: NewRun): Promise<{ ticket: number | null; ahead: number }> {
    // Sent together: the run takes the ticket that the first has drawn and holds, and sees who is before it.
    const drawn = run.seated ? this.#drawTicket(run.character_id, run.owner_id) : null
    const inserted = this.#database.query<{ ticket: number | null; ahead: number }>(
      `INSERT INTO runs (id, owner_id, kind, seated, character_id, tree_id, question_id, candidate_id, continues_run_id, parent_run_id, state, ticket,
                         queued_at, queue_expires_at, protocol_version, reducer_version, trace_id, settings)
       VALUES ($1::uuid, $2::uuid, $3, $4, $5::uuid, $6::uuid, $7::uuid, $8::uuid, $9::uuid, $10::uuid, 'queued',
               (SELECT last_ticket FROM seats WHERE character_id = $5::uuid AND $4),
               now(), $11, $12, $13, $14::uuid, $15::jsonb)
       RETURNING ticket, CASE WHEN ticket IS NULL THEN 0 ELSE (${aheadSql('runs.character_id', 'runs.ticket')}) END AS ahead`,
      [
        run.id,
        run.owner_id,
        run.kind,
        run.seated,
        run.character_id,
        run.tree_id,
        run.question_id,
        run.candidate_id,
        run.continues_run_id ?? null,
        run.parent_run_id ?? null,
        run.queueExpiresAt,
        PROTOCOL_VERSION,
        REDUCER_VERSION,
        run.trace_id,
        JSON.stringify(run.settings),
      ],
    )
    const [, [row]] = await Promise.all([drawn, inserted])
    if (!row) throw new RowCountError('insert run', 1, 0)
    return row
  }

  async #drawTicket(characterId: string, ownerId: string): Promise<void> {
    await this.#database.execute(
      `INSERT INTO seats (character_id, owner_id, last_ticket) VALUES ($1::uuid, $2::uuid, 1)
       ON CONFLICT (character_id) DO UPDATE SET last_ticket = seats.last_ticket + 1`,
      [characterId, ownerId],
    )
  }

  async #ahead(characterId: string, ticket: number): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>(aheadSql('$1::uuid', '$2'), [characterId, ticket])
    return row?.count ?? 0
  }

  async find(ownerId: string, runId: string): Promise<RunRow | null> {
    return this.#one(`r.id = $1::uuid AND r.owner_id = $2::uuid`, [runId, ownerId])
  }

  async lock(ownerId: string, runId: string): Promise<RunRow | null> {
    const rows = await this.#database.query('SELECT 1 FROM runs WHERE id = $1::uuid AND owner_id = $2::uuid FOR UPDATE', [runId, ownerId])
    return rows.length === 0 ? null : this.find(ownerId, runId)
  }

  async get(runId: string): Promise<RunRow | null> {
    return this.#one('r.id = $1::uuid', [runId])
  }

  async #one(where: string, params: Parameters<Database['query']>[1]): Promise<RunRow | null> {
    const [row] = await this.#database.query<RunRow>(`SELECT ${columns} FROM runs r WHERE ${where} LIMIT 1`, params)
    return row ?? null
  }

  async list(options: Parameters<RunStore['list']>[0]): Promise<RunRow[]> {
    return this.#database.query<RunRow>(
      `SELECT ${columns} FROM runs r
       WHERE ($1::uuid IS NULL OR r.owner_id = $1::uuid) AND ($2::text IS NULL OR r.state = $2)
         AND ($3::uuid IS NULL OR r.character_id = $3::uuid) AND ($4::uuid IS NULL OR r.tree_id = $4::uuid)
         AND ($5::timestamptz IS NULL OR (date_trunc('milliseconds', r.requested_at), r.id) < ($5::timestamptz, $6::uuid))
       ORDER BY date_trunc('milliseconds', r.requested_at) DESC, r.id DESC LIMIT $7`,
      [
        options.ownerId,
        options.state ?? null,
        options.characterId ?? null,
        options.treeId ?? null,
        options.before?.requestedAt ?? null,
        options.before?.id ?? null,
        options.limit,
      ],
    )
  }

  async names(runIds: readonly string[]): Promise<Map<string, { owner_name: string; character_name: string; tree_title: string | null }>> {
    const rows = await this.#database.query<{ id: string; owner_name: string; character_name: string; tree_title: string | null }>(
      `SELECT r.id, o.name AS owner_name, c.name AS character_name, t.title AS tree_title
       FROM runs r JOIN owners o ON o.id = r.owner_id JOIN characters c ON c.id = r.character_id LEFT JOIN trees t ON t.id = r.tree_id
       WHERE r.id = ANY ($1::uuid[])`,
      [[...runIds]],
    )
    return new Map(rows.map(({ id, ...names }) => [id, names]))
  }

  /** Ended or running runs that sent something, picked at random; for replay samples. */
  async sample(count: number): Promise<RunRow[]> {
    return this.#database.query<RunRow>(
      `SELECT ${columns} FROM runs r
       WHERE EXISTS (SELECT 1 FROM events e WHERE e.stream = 'run:' || r.id AND e.type = 'llm.requested') ORDER BY random() LIMIT $1`,
      [count],
    )
  }

  async liveUnder(questionId: string): Promise<RunRow | null> {
    return this.#one(`r.question_id = $1::uuid AND r.state IN ('queued', 'running', 'suspended') ORDER BY r.ticket`, [questionId])
  }

  async byCandidate(candidateId: string): Promise<RunRow | null> {
    return this.#one('r.candidate_id = $1::uuid', [candidateId])
  }

  async countWaiting(ownerId: string): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM runs WHERE owner_id = $1::uuid AND seated AND state IN ('queued', 'running')`,
      [ownerId],
    )
    return row?.count ?? 0
  }

  async ahead(run: RunRow): Promise<number> {
    return run.state === 'queued' && run.ticket !== null ? this.#ahead(run.character_id, run.ticket) : 0
  }

  async seatHolder(characterId: string): Promise<RunRow | null> {
    return this.#one(`r.character_id = $1::uuid AND r.seated AND r.state = 'running'`, [characterId])
  }

  async claimNext(characterId: string, holder: string): Promise<RunRow | null> {
    // Sent together: the claim begins, and sees what there is, once the lock is held. Without a seat it finds nothing.
    const lock = this.#database.query('SELECT 1 FROM seats WHERE character_id = $1::uuid FOR UPDATE', [characterId])
    const claim = this.#database.query<RunRow>(
      `WITH next AS (
         SELECT q.id FROM runs q
         WHERE q.character_id = $1::uuid AND q.seated AND q.state = 'queued' AND q.${ours} AND ${canBegin} AND (q.queue_expires_at IS NULL OR q.queue_expires_at > clock_timestamp())
           AND NOT EXISTS (SELECT 1 FROM runs b WHERE b.character_id = $1::uuid AND b.seated AND b.state = 'running')
         ORDER BY q.ticket LIMIT 1
       ), fence AS (
         UPDATE seats SET last_fence = last_fence + 1 WHERE character_id = $1::uuid AND EXISTS (SELECT 1 FROM next) RETURNING last_fence
       )
       UPDATE runs r SET state = 'running', fence = fence.last_fence, holder = $2, lease_until = ${lease}, started_at = coalesce(started_at, now())
       FROM next, fence WHERE r.id = next.id AND r.state = 'queued' RETURNING ${columns}`,
      [characterId, holder],
    )
    const [, [claimed]] = await Promise.all([lock, claim])
    return claimed ?? null
  }

  async claimUnseated(runId: string, holder: string): Promise<RunRow | null> {
    const [claimed] = await this.#database.query<RunRow>(
      `UPDATE runs r SET state = 'running', fence = r.fence + 1, holder = $2, lease_until = ${lease}, started_at = coalesce(started_at, now())
       WHERE r.id = $1::uuid AND NOT r.seated AND r.state = 'queued' AND r.${ours} AND ${canBegin} RETURNING ${columns}`,
      [runId, holder],
    )
    return claimed ?? null
  }

  async takeQueued(runId: string, holder: string): Promise<RunRow | null> {
    return this.#database.run(async () => {
      // The seat before the queued run, as claimNext locks them; the other order could wait for each other.
      await this.#database.query(
        'SELECT 1 FROM seats s WHERE s.character_id = (SELECT r.character_id FROM runs r WHERE r.id = $1::uuid) FOR UPDATE',
        [runId],
      )
      return this.#take(runId, `r.state IN ('queued', 'suspended')`, [], holder)
    })
  }

  async takeOver(runId: string, fence: number, holder: string): Promise<RunRow | null> {
    return this.#take(runId, `r.state = 'running' AND r.fence = $3`, [fence], holder)
  }

  /** Raises the fence above every one given out for the character; the state stays, so that the seat does not look free meanwhile. */
  async #take(runId: string, condition: string, params: number[], holder: string): Promise<RunRow | null> {
    const [taken] = await this.#database.query<RunRow>(
      `WITH run AS (SELECT r.id, r.character_id FROM runs r WHERE r.id = $1::uuid AND r.${ours} AND ${condition} FOR UPDATE),
       fence AS (UPDATE seats s SET last_fence = last_fence + 1 FROM run WHERE s.character_id = run.character_id RETURNING last_fence)
       UPDATE runs r SET fence = greatest(coalesce((SELECT last_fence FROM fence), 0), r.fence + 1), holder = $2, lease_until = ${lease}
       FROM run WHERE r.id = run.id RETURNING ${columns}`,
      [runId, holder, ...params],
    )
    return taken ?? null
  }

  async heartbeat(held: readonly { id: string; fence: number }[]): Promise<{ id: string; fence: number; killed: boolean }[]> {
    if (held.length === 0) return []
    // Rows are locked in id order, as appends lock them.
    return this.#database.query(
      `WITH own AS (
         SELECT r.id FROM runs r JOIN unnest($1::uuid[], $2::bigint[]) AS h(id, fence) ON h.id = r.id AND h.fence = r.fence
         WHERE r.state = 'running' ORDER BY r.id FOR UPDATE OF r)
       UPDATE runs r SET lease_until = ${lease} FROM own WHERE r.id = own.id
       RETURNING r.id, r.fence, EXISTS (
         SELECT 1 FROM kill_flags k
         WHERE k.scope = 'global' OR (k.scope = 'owner' AND k.scope_id = r.owner_id) OR (k.scope = 'character' AND k.scope_id = r.character_id)) AS killed`,
      [held.map((run) => run.id), held.map((run) => run.fence)],
    )
  }

  async expired({ holderPrefixAlive }: { holderPrefixAlive?: string }): Promise<RunRow[]> {
    return this.#database.query<RunRow>(
      `SELECT ${columns} FROM runs r
       WHERE r.state = 'running' AND r.${ours} AND (r.lease_until < clock_timestamp() OR ($1::text IS NOT NULL AND NOT starts_with(r.holder, $1)))
       ORDER BY r.lease_until LIMIT 100`,
      [holderPrefixAlive ?? null],
    )
  }

  async queueExpired(): Promise<RunRow[]> {
    return this.#database.query<RunRow>(
      `SELECT ${columns} FROM runs r WHERE r.state = 'queued' AND r.${ours} AND r.queue_expires_at < clock_timestamp()
       ORDER BY r.lease_until NULLS FIRST, r.queue_expires_at LIMIT 100`,
    )
  }

  async startable(): Promise<string[]> {
    const rows = await this.#database.query<{ character_id: string }>(
      `SELECT DISTINCT q.character_id FROM runs q
       WHERE q.state = 'queued' AND q.seated AND q.${ours} AND ${canBegin} AND (q.queue_expires_at IS NULL OR q.queue_expires_at > clock_timestamp())
         AND NOT EXISTS (SELECT 1 FROM runs b WHERE b.character_id = q.character_id AND b.seated AND b.state = 'running') LIMIT 200`,
    )
    return rows.map((row) => row.character_id)
  }

  async end(run: Parameters<RunStore['end']>[0]): Promise<boolean> {
    const rows = await this.#database.execute(
      `UPDATE runs SET state = $3, reason = $4, ended_at = clock_timestamp(), lease_until = NULL
       WHERE id = $1::uuid AND fence = $2 AND state IN ('queued', 'running', 'suspended')`,
      [run.id, run.fence, run.state, run.reason],
    )
    return rows === 1
  }

  async suspend(run: Parameters<RunStore['suspend']>[0]): Promise<boolean> {
    const rows = await this.#database.execute(
      `UPDATE runs SET state = 'suspended', reason = $3, holder = NULL, lease_until = NULL, queue_expires_at = NULL
       WHERE id = $1::uuid AND fence = $2 AND state = 'running'`,
      [run.id, run.fence, run.reason],
    )
    return rows === 1
  }

  async requeue(runId: string): Promise<boolean> {
    // The seat's row first, as claimNext locks them. A run without a seat has no line to stand in.
    const [seat] = await this.#database.query<{ ticket: number }>(
      `UPDATE seats s SET first_ticket = first_ticket - 1 FROM runs r
       WHERE r.id = $1::uuid AND r.seated AND r.state = 'suspended' AND s.character_id = r.character_id RETURNING s.first_ticket AS ticket`,
      [runId],
    )
    const rows = await this.#database.execute(
      `UPDATE runs SET state = 'queued', reason = NULL, ticket = $2, queued_at = now() WHERE id = $1::uuid AND state = 'suspended'`,
      [runId, seat?.ticket ?? null],
    )
    return rows === 1
  }

  async waitingForEffect(limit: number): Promise<RunRow[]> {
    return this.#database.query<RunRow>(
      `SELECT ${columns} FROM runs r
       JOIN LATERAL (SELECT count(*) FILTER (WHERE c.state -> 'waits_for' ->> 'reason' = 'waiting_for_effect')::int AS stops, max(c.created_at) AS last
                     FROM checkpoints c WHERE c.run_id = r.id) c ON true
       WHERE r.state = 'suspended' AND r.${ours} AND c.last IS NOT NULL
         AND ((r.reason = 'waiting_for_effect' AND c.last <= clock_timestamp() - interval '1 second' * least(power(2, least(c.stops, 20) - 1), 600))
           OR (r.reason <> 'reconcile_required'
               AND EXISTS (SELECT 1 FROM run_commands k WHERE k.run_id = r.id AND k.kind = 'cancel' AND k.recorded_at IS NULL)))
       ORDER BY r.started_at LIMIT $1`,
      [limit],
    )
  }

  async holdFence(runId: string, fence: number): Promise<boolean> {
    const rows = await this.#database.query(
      `SELECT 1 FROM runs WHERE id = $1::uuid AND fence = $2 AND state IN ('queued', 'running', 'suspended') FOR UPDATE`,
      [runId, fence],
    )
    return rows.length === 1
  }

  async pinVersions(runId: string, pinned: { personaVersionId: string | null; profileVersionId: string }): Promise<void> {
    const written = await this.#database.execute(
      'UPDATE runs SET persona_version_id = $2::uuid, profile_version_id = $3::uuid WHERE id = $1::uuid',
      [runId, pinned.personaVersionId, pinned.profileVersionId],
    )
    if (written !== 1) throw new RowCountError('pin versions', 1, written)
  }

  async isKilled(run: Pick<RunRow, 'owner_id' | 'character_id'>): Promise<boolean> {
    const rows = await this.#database.query(
      `SELECT 1 FROM kill_flags WHERE scope = 'global' OR (scope = 'owner' AND scope_id = $1::uuid) OR (scope = 'character' AND scope_id = $2::uuid)`,
      [run.owner_id, run.character_id],
    )
    return rows.length > 0
  }

  async insertCommand(command: Parameters<RunStore['insertCommand']>[0]): Promise<void> {
    const written = await this.#database.execute(
      `INSERT INTO run_commands (id, run_id, owner_id, seq, kind, content_id, protocol_version)
       SELECT $1::uuid, r.id, $3::uuid, (SELECT coalesce(max(c.seq), 0) + 1 FROM run_commands c WHERE c.run_id = r.id), $4, $5::uuid, ${PROTOCOL_VERSION}
       FROM runs r WHERE r.id = $2::uuid AND r.${ours}`,
      [command.id, command.run_id, command.owner_id, command.kind, command.content_id],
    )
    if (written !== 1) throw new LingtaiError('other_version')
  }

  async openCommands(runId: string): Promise<RunCommandRow[]> {
    return this.#database.query<RunCommandRow>(
      `SELECT id, run_id, seq, kind, content_id, accepted_at, recorded_at FROM run_commands
       WHERE run_id = $1::uuid AND recorded_at IS NULL ORDER BY seq`,
      [runId],
    )
  }

  async countOpenSteers(runId: string): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM run_commands WHERE run_id = $1::uuid AND kind = 'steer' AND recorded_at IS NULL`,
      [runId],
    )
    return row?.count ?? 0
  }

  async recordCommands(commandIds: readonly string[], used: boolean): Promise<void> {
    if (commandIds.length === 0) return
    await this.#database.execute(
      'UPDATE run_commands SET recorded_at = clock_timestamp(), used = $2 WHERE id = ANY ($1::uuid[]) AND recorded_at IS NULL',
      [[...commandIds], used],
    )
  }

  async segments(runId: string): Promise<SegmentRow[]> {
    return this.#database.query<SegmentRow>(
      'SELECT run_id, ordinal, part, kind, body, salt FROM segments WHERE run_id = $1::uuid ORDER BY ordinal',
      [runId],
    )
  }

  async insertSegments(rows: readonly SegmentRow[]): Promise<void> {
    if (rows.length === 0) return
    await this.#database.execute(
      `INSERT INTO segments (run_id, ordinal, part, kind, body, salt)
       SELECT s.run_id, s.ordinal, s.part, s.kind, s.body, decode(s.salt, 'hex')
       FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::text[], $6::text[]) AS s(run_id, ordinal, part, kind, body, salt)`,
      [
        rows.map((row) => row.run_id),
        rows.map((row) => row.ordinal),
        rows.map((row) => row.part),
        rows.map((row) => row.kind),
        rows.map((row) => row.body),
        rows.map((row) => Buffer.from(row.salt).toString('hex')),
      ],
    )
  }

  async deleteSegments(runId: string): Promise<void> {
    await this.#database.execute('DELETE FROM segments WHERE run_id = $1::uuid', [runId])
  }
}
