import { z } from 'zod'

/** What a command asks of a running server: one line of JSON. */
export const AdminRequest = z.object({ verb: z.string().max(40), options: z.record(z.string().max(40), z.string().max(1000)) })
export type AdminRequest = z.infer<typeof AdminRequest>

/** What it is told: notes while it goes on, then one answer or error; one line of JSON each. */
export const AdminReply = z.union([
  z.object({ note: z.string() }),
  z.object({ value: z.string(), ok: z.boolean() }),
  z.object({ error: z.string(), isUsage: z.boolean() }),
])
export type AdminReply = z.infer<typeof AdminReply>

/** Longest line in UTF-16 units. */
export const LONGEST_LINE = 64 * 1024

export function parseLine<Schema extends z.ZodType>(schema: Schema, line: string): z.output<Schema> | null {
  try {
    return schema.parse(JSON.parse(line))
  } catch {
    return null // whatever it is, it is not ours to answer; the caller says so
  }
}
