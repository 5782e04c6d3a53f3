import { z } from 'zod'
import { Id } from './ids.ts'

/** UTF-16 units of one text, and changes of one patch, at most. */
const TEXT_MAX = 1_000_000
const OPS_MAX = 256

const at = z.int().min(0)
const role = z.enum(['system', 'user', 'assistant'])
const text = z.string().min(1).max(TEXT_MAX)

/**
 * How a listener rewrote the messages of one request, version 1 (spec/2 "Rewrites and the rebuild assertion"). The changes apply one after
 * another, each to the messages that the one before left; `at` counts from 0. Messages of text alone: tool calls and what came of them stay
 * as they are. Frozen: recorded requests are rebuilt with it, and a change of it is another version.
 */
export const RequestPatch = z.strictObject({
  version: z.literal(1),
  /** What it is about: the content or node that one of the messages comes from. */
  reference: Id.nullable(),
  ops: z
    .array(
      z.discriminatedUnion('op', [
        z.strictObject({ op: z.literal('replace'), at, role, text }),
        /** Before the message that stands there now; at the number of messages: after the last. */
        z.strictObject({ op: z.literal('insert'), at, role, text }),
        z.strictObject({ op: z.literal('remove'), at }),
      ]),
    )
    .min(1)
    .max(OPS_MAX),
})
export type RequestPatch = z.infer<typeof RequestPatch>
