import type { EventPayload, EventRecord, EventType } from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type { RunEvent } from '#kernel/reducer/actions'
import type { FoldInsert } from './fold-answer.ts'

type Placed = Pick<RunEvent, 'type' | 'payload' | 'content_digests'>

/** Types of events that may put something between the words of an answer. */
export const insertTypes: readonly EventType[] = ['steer.received', 'tool.pre_execute', 'tool.executed']

/** Whether an event puts something between the words of an answer. */
export function placesInsert(event: { type: EventType; payload: Record<string, unknown> }): boolean {
  return insertTypes.includes(event.type) && (event.type !== 'steer.received' || event.payload.used === true)
}

/** What an event puts between the words of an answer, or null. `textOf` gives the text of a content; null once erased. */
export function insertOf(event: Placed, textOf: (contentId: string) => string | null): FoldInsert | null {
  const digest = event.content_digests?.[0]?.digest ?? ''
  switch (event.type) {
    case 'steer.received': {
      const { content_id, after_segments, used } = event.payload as EventPayload<'steer.received'>
      if (!used) return null
      return { kind: 'steer', content_id, digest, text: textOf(content_id) ?? '', after_segments, trust: 'trusted', action: null }
    }
    case 'tool.pre_execute': {
      const { action_id, tool, content_id, after_segments } = event.payload as EventPayload<'tool.pre_execute'>
      return {
        kind: 'tool_call',
        content_id,
        digest,
        text: JSON.stringify({ action_id, tool, content_id }),
        after_segments,
        // The character's own words; what they may be believed is the trust of its context, which the caller knows.
        trust: 'workspace',
        action: { action_id, tool, status: null, reason: null, body: textOf(content_id) },
      }
    }
    case 'tool.executed': {
      const { action_id, tool, status, reason, content_id, trust, after_segments } = event.payload as EventPayload<'tool.executed'>
      return {
        kind: 'tool_result_ref',
        content_id,
        digest,
        text: JSON.stringify({ action_id, tool, status, reason, content_id }),
        after_segments,
        trust,
        action: { action_id, tool, status, reason, body: content_id === null ? null : textOf(content_id) },
      }
    }
    default:
      return null
  }
}

/** The inserts of a run as its record shows them, with the texts that they refer to. */
export async function insertsOf(records: readonly EventRecord[], contents: ContentStore): Promise<FoldInsert[]> {
  const events = records.filter((record) => placesInsert(record))
  const found = await contents.get(events.flatMap(({ payload }) => (typeof payload.content_id === 'string' ? [payload.content_id] : [])))
  return events.flatMap((record) => {
    const insert = insertOf(record as unknown as Placed, (contentId) => found.get(contentId)?.body ?? null)
    return insert ? [insert] : []
  })
}
