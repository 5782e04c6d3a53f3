import { z } from 'zod'
import { MemoryOrigin, MemoryType } from './enums.ts'
import { Id } from './ids.ts'

/**
 * The wire format between the memory slice and a model: the JSON of the one user message that it is sent, and the JSON that it answers
 * (spec/5 "Writing"). The answer's schema travels as `response_format.json_schema` under the names below.
 */

/** `response_format.json_schema.name` of the two requests. */
export const EXTRACTION_FORMAT_NAME = 'memory_extraction'
export const DEDUPE_FORMAT_NAME = 'memory_dedupe'

/** Longest memory a model may propose, in UTF-16 units. */
export const PROPOSAL_MAX_LENGTH = 2_000
/** Most proposals of one answer. */
export const PROPOSALS_MAX = 50

/** One message of the canonical scope. `at` is local time with its offset; an id stands twice where a long message was cut. */
export const ExtractionMessage = z.object({ id: Id, role: z.enum(['user', 'character']), speaker: z.string(), at: z.string(), text: z.string() })
export type ExtractionMessage = z.infer<typeof ExtractionMessage>

/** A memory that is already there, as the model is shown it. */
export const KnownMemory = z.object({ id: Id, content: z.string(), type: MemoryType })
export type KnownMemory = z.infer<typeof KnownMemory>

export const ExtractionRequest = z.object({
  messages: z.array(ExtractionMessage),
  /** IANA zone that relative dates are meant in. */
  zone: z.string(),
  existing: z.array(KnownMemory).optional(),
})
export type ExtractionRequest = z.infer<typeof ExtractionRequest>

export const MemoryProposal = z.object({
  content: z.string().min(1).max(PROPOSAL_MAX_LENGTH),
  type: MemoryType,
  priority: z.number().min(0).max(1),
  confidence: z.number().min(0).max(1),
  sensitive: z.boolean(),
  origin: MemoryOrigin,
  source_message_ids: z.array(z.string()),
})
export type MemoryProposal = z.infer<typeof MemoryProposal>

export const ExtractionAnswer = z.object({ proposals: z.array(MemoryProposal).max(PROPOSALS_MAX) })
export type ExtractionAnswer = z.infer<typeof ExtractionAnswer>

export const DedupeRequest = z.object({
  proposals: z.array(z.object({ index: z.int().min(0), content: z.string(), type: MemoryType })),
  pool: z.array(KnownMemory),
})
export type DedupeRequest = z.infer<typeof DedupeRequest>

/**
 * store: something new. skip: told already by the targets. update: takes the place of one target. merge: one memory out of the proposal
 * and its targets; `content` is the text of the result, absent = the proposal's own.
 */
export const DedupeDecision = z.object({
  index: z.int().min(0),
  action: z.enum(['store', 'skip', 'update', 'merge']),
  target_ids: z.array(z.string()),
  content: z.string().min(1).max(PROPOSAL_MAX_LENGTH).nullish(),
})
export type DedupeDecision = z.infer<typeof DedupeDecision>

export const DedupeAnswer = z.object({ decisions: z.array(DedupeDecision).max(PROPOSALS_MAX) })
export type DedupeAnswer = z.infer<typeof DedupeAnswer>
