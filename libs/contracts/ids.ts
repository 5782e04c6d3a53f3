import { z } from 'zod'

/** UUIDv7 as lower-case text (spec/1 "Data rules"). */
export const Id = z.uuid()
export type Id = z.infer<typeof Id>

/** The only free-form string an event payload may hold (decision 10). */
export const Slug = z.string().regex(/^[A-Za-z0-9_.:/-]{1,64}$/)
export type Slug = z.infer<typeof Slug>

/** SHA-256 as 64 lower-case hex digits. */
export const Digest = z.string().regex(/^[0-9a-f]{64}$/)
export type Digest = z.infer<typeof Digest>

/** The application's time, ISO 8601 in UTC with milliseconds (decision 8). */
export const Instant = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
export type Instant = z.infer<typeof Instant>

const slugPattern = /^[A-Za-z0-9_.:/-]{1,64}$/

/** Anything that is not a slug becomes `other`; the caller keeps the original as content where it matters (decision 10). */
export function toSlug(value: string | null | undefined): Slug {
  return value !== null && value !== undefined && slugPattern.test(value) ? value : 'other'
}
