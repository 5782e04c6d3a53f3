import { z } from 'zod'
import { Trust } from './enums.ts'
import { actionEvents } from './events/action-events.ts'
import { adminEvents } from './events/admin-events.ts'
import { confirmationEvents } from './events/confirmation-events.ts'
import { count } from './events/definition.ts'
import type { EventDefinition } from './events/definition.ts'
import { memoryEvents } from './events/memory-events.ts'
import { runEvents } from './events/run-events.ts'
import { taskEvents } from './events/task-events.ts'
import { treeEvents } from './events/tree-events.ts'
import { Digest, Id, Instant, Slug } from './ids.ts'

export { ContextPiece, RecordedEntity } from './events/context.ts'
export type { EventDefinition } from './events/definition.ts'

/** One protocol version per run, never negotiated (K7). */
export const PROTOCOL_VERSION = 1

/**
 * Every event type: payload schema, version, visibility, stream kind. Payloads hold ids, enums, numbers and digests
 * (decision 10). `reserved` entries are named by the design and not yet written by any code.
 */
const definitions = {
  ...runEvents,
  ...actionEvents,
  ...confirmationEvents,
  ...treeEvents,
  ...memoryEvents,
  ...adminEvents,
  ...taskEvents,
} as const satisfies Record<string, EventDefinition>

export type EventType = keyof typeof definitions
export type EventPayload<T extends EventType> = z.infer<(typeof definitions)[T]['payload']>

/** The dictionary of events, by type. */
export const eventDictionary: Readonly<Record<EventType, EventDefinition>> = definitions

/** The dictionary's payload schema of a type, with its own inferred type. */
export function payloadSchema<T extends EventType>(type: T): (typeof definitions)[T]['payload'] {
  return definitions[type].payload
}

export const EventTypeName = z.enum(Object.keys(definitions) as [EventType, ...EventType[]])

/** Types that end a run; after one of them its stream takes nothing more. */
export const terminalRunEvents: ReadonlySet<EventType> = new Set<EventType>(['run.finished', 'run.interrupted', 'run.failed'])

/** A digest of content that an event refers to (decision 10). */
export const ContentDigest = z.object({ content_id: Id, digest: Digest, segment: count.optional() })
export type ContentDigest = z.infer<typeof ContentDigest>

/** The command that caused an event: its tag and the readings it brought (decision 15). */
export const Cause = z.object({ tag: Slug, readings: z.record(Slug, z.union([z.number(), z.boolean(), Slug])).optional() })
export type Cause = z.infer<typeof Cause>

/**
 * The part of an event that the hash covers, in canonical JSON (decision 8). Position and database clocks stay outside.
 * Deltas leave out what their run.requested says already (decision 12).
 */
export const EventRecord = z.object({
  stream: z.string(),
  seq: z.int().min(1),
  type: EventTypeName,
  version: z.int().min(1),
  protocol_version: z.int().min(1).optional(),
  visibility: z.enum(['public', 'internal', 'audit']).optional(),
  owner_id: Id.nullable().optional(),
  character_id: Id.nullable().optional(),
  run_id: Id.nullable().optional(),
  trace_id: Id.nullable().optional(),
  actor: Slug.optional(),
  trust: Trust.optional(),
  at: Instant,
  cause: Cause,
  payload: z.record(z.string(), z.unknown()),
  content_digests: z.array(ContentDigest),
})
export type EventRecord = z.infer<typeof EventRecord>

/** What a writer hands over; stream position, version, visibility and chain are filled in by the log. */
export type NewEvent<T extends EventType = EventType> = {
  [K in T]: {
    type: K
    payload: EventPayload<K>
    character_id?: Id | null
    run_id?: Id | null
    trace_id?: Id | null
    actor: Slug
    trust?: Trust
    at: Instant
    cause: Cause
    content_digests?: ContentDigest[]
  }
}[T]
