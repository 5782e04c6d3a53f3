import { z } from 'zod'
import { errorCodes } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import { Id } from '../ids.ts'

/** Largest message a person may send, in UTF-8 bytes (decision 7). */
export const MESSAGE_MAX_BYTES = 256 * 1024

/** A person's text: cleaned at the edge, never blank, bounded in bytes (decision 7). */
export const MessageText = z
  .string()
  .max(MESSAGE_MAX_BYTES)
  .refine((text) => text.trim().length > 0, 'must not be blank')
  .refine((text) => new TextEncoder().encode(text).byteLength <= MESSAGE_MAX_BYTES, `must be at most ${MESSAGE_MAX_BYTES} bytes`)

/** IANA zone name, such as `Asia/Shanghai` (decision 42). */
export const Zone = z
  .string()
  .max(64)
  .refine((zone) => {
    try {
      return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
    } catch {
      return false // an unknown zone is exactly what this check reports
    }
  }, 'must be an IANA time zone')

export const PageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(200).optional(),
})

export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
    detail: z.string(),
    action: z.string(),
    trace_id: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    data: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'Problem' })
export type Problem = z.infer<typeof Problem>

/** A page of rows; `next_cursor` is null on the last one. */
export function pageOf<T extends z.ZodType>(item: T, id: string) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable() }).meta({ id })
}

export const Acknowledged = z.object({ id: Id }).meta({ id: 'Acknowledged' })
