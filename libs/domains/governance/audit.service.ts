import { EventTypeName, LingtaiError } from '#contracts'
import type { AuditEvent, EventType } from '#contracts'
import type { AuditStore } from './ports.ts'

type OutboxView = {
  id: string
  topic: string
  attempts: number
  last_error: string | null
  created_at: string
  due_at: string
  closed_at: string | null
  outcome: string | null
}

/** What an admin may read across owners: the log's envelopes and payloads, which hold no text (decision 10), and the outbox. */
export class AuditService {
  readonly #store: AuditStore

  constructor(store: AuditStore) {
    this.#store = store
  }

  /** Newest first; the cursor is the last one's position, to be given as `before`. Throws validation_failed for a type that is none. */
  async events(query: { stream?: string; type?: string; run_id?: string; before?: number; limit: number }): Promise<{
    items: AuditEvent[]
    next_cursor: string | null
  }> {
    const events = await this.#store.events({
      stream: query.stream,
      type: query.type === undefined ? undefined : eventType(query.type),
      runId: query.run_id,
      before: query.before,
      limit: query.limit + 1,
    })
    const shown = events.slice(0, query.limit)
    return {
      items: shown.map(({ record, ...columns }) => ({
        position: columns.position,
        stream: record.stream,
        seq: record.seq,
        type: record.type,
        visibility: columns.visibility,
        owner_id: columns.owner_id,
        run_id: columns.run_id,
        at: record.at,
        actor: record.actor ?? 'run',
        payload: record.payload,
      })),
      next_cursor: events.length > query.limit ? String(shown.at(-1)?.position) : null,
    }
  }

  /** Newest first; the cursor is the last one's id. */
  async outbox(page: { limit: number; after: string | null }): Promise<{ items: OutboxView[]; next_cursor: string | null }> {
    const rows = await this.#store.outbox({ before: page.after, limit: page.limit + 1 })
    const shown = rows.slice(0, page.limit)
    return {
      items: shown.map((row) => ({
        ...row,
        created_at: row.created_at.toISOString(),
        due_at: row.due_at.toISOString(),
        closed_at: row.closed_at?.toISOString() ?? null,
      })),
      next_cursor: rows.length > page.limit ? (shown.at(-1)?.id ?? null) : null,
    }
  }
}

function eventType(type: string): EventType {
  const parsed = EventTypeName.safeParse(type)
  if (!parsed.success)
    throw new LingtaiError('validation_failed', undefined, { errors: [{ path: 'query.type', message: 'is no event type' }] })
  return parsed.data
}
