import type { EventLog, StoredEvent } from '#kernel/ports/event-log'

const PAGE = 2_000

/** A whole stream from its first event, however long. */
export async function readStream(log: Pick<EventLog, 'read'>, stream: string): Promise<StoredEvent[]> {
  const events: StoredEvent[] = []
  for (;;) {
    const page = await log.read(stream, { after: events.at(-1)?.record.seq ?? 0, limit: PAGE })
    events.push(...page)
    if (page.length < PAGE) return events
  }
}
