import type { z } from 'zod'

/** A body that is taken as bytes. `limit` in bytes. */
export class RawBody {
  readonly types: readonly string[]
  readonly limit: number

  constructor({ types, limit }: { types: readonly string[]; limit: number }) {
    this.types = types
    this.limit = limit
  }
}

/** An answer without a body: 204. */
export type NoContent = { kind: 'no_content' }
export const noContent: NoContent = { kind: 'no_content' }

/** An answer that is a file of one of these media types. */
export type FileAnswer = { kind: 'file'; types: readonly string[] }
export const fileAnswer = (...types: string[]): FileAnswer => ({ kind: 'file', types })

/**
 * What a handler of a FileAnswer returns. With `name` it is saved, without it shown; `etag` lets a browser keep it; `policy` is its own
 * Content-Security-Policy, without which it may do nothing at all.
 */
export type SentFile = { bytes: Uint8Array; type: string; name?: string; etag?: string; policy?: string }

/** An answer that is a stream of server-sent events, each of this shape. */
export type EventStream = { kind: 'event_stream'; event: z.ZodType }
export const eventStream = (event: z.ZodType): EventStream => ({ kind: 'event_stream', event })
