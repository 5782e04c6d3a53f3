import { z } from 'zod'
import { MemoryType } from './enums.ts'

/*
 * The wire format of the two model calls that write memories, and of the summary (spec/5 "Writing"). A request's user message is the JSON
 * text of the Request; `response_format.json_schema` has the name below and the schema of the Answer; the reply's text is the Answer.
 */

/** Names of `response_format.json_schema`: what a request asks for is told by these alone. */
export const ModelAnswerName = z.enum(['memory_extraction', 'memory_dedupe', 'conversation_summary'])
export type ModelAnswerName = z.infer<typeof ModelAnswerName>

/** Ids travel as they are; whether they exist and lie in the scope is the caller's check. */
const MessageId = z.string().min(1).max(64)

export const ExtractionRequest = z.object({
  messages: z.array(
    z.object({
      id: MessageId,
      role: z.enum(['user', 'character']),
      /** Whose words these are, by name. */
      speaker: z.string(),
      /** ISO time of the message: relative dates count from it. */
      at: z.string(),
      text: z.string(),
    }),
  ),
  /** IANA zone of the user, in which "tomorrow" is meant. */
  zone: z.string(),
  /** What is remembered already, so that it is not proposed again. */
  existing: z.array(z.object({ id: z.string(), content: z.string(), type: MemoryType })).optional(),
})
export type ExtractionRequest = z.infer<typeof ExtractionRequest>

export const ExtractionProposal = z.object({
  /** One sentence in the third person that stands alone, in the language of its source. */
  content: z.string().min(1).max(2_000),
  type: MemoryType,
  /** How much it matters, 0 to 1. */
  priority: z.number().min(0).max(1),
  /** How sure it is, 0 to 1. */
  confidence: z.number().min(0).max(1),
  sensitive: z.boolean(),
  source_message_ids: z.array(MessageId).min(1).max(32),
  /** When it happens or happened: an ISO date or time; null or absent = unknown or lasting. */
  event_at: z.string().max(40).nullish(),
})
export type ExtractionProposal = z.infer<typeof ExtractionProposal>

/** No proposals is a good answer: rather none than noise. */
export const ExtractionAnswer = z.object({ proposals: z.array(ExtractionProposal).max(64) })
export type ExtractionAnswer = z.infer<typeof ExtractionAnswer>

export const DedupeRequest = z.object({
  proposals: z.array(z.object({ index: z.int().min(0), content: z.string(), type: MemoryType })),
  /** Live memories near to the proposals. */
  pool: z.array(z.object({ id: z.string(), content: z.string(), type: MemoryType })),
})
export type DedupeRequest = z.infer<typeof DedupeRequest>

/**
 * store: new. skip: the targets say it already. update: it supersedes the one target (same subject and attribute, another value). merge: it and
 * the targets become `content`. `target_ids` come from the pool; update and merge need at least one.
 */
export const DedupeDecision = z.object({
  index: z.int().min(0),
  action: z.enum(['store', 'skip', 'update', 'merge']),
  target_ids: z.array(z.string().min(1).max(64)).max(16),
  content: z.string().min(1).max(2_000).nullish(),
})
export type DedupeDecision = z.infer<typeof DedupeDecision>

export const DedupeAnswer = z.object({ decisions: z.array(DedupeDecision).max(64) })
export type DedupeAnswer = z.infer<typeof DedupeAnswer>

/** Five parts (spec/5 "Compaction"); an empty list where there is nothing to say. */
export const SummaryAnswer = z.object({
  background: z.array(z.string()),
  facts: z.array(z.string()),
  relationships: z.array(z.string()),
  open_matters: z.array(z.string()),
  key_decisions: z.array(z.string()),
})
export type SummaryAnswer = z.infer<typeof SummaryAnswer>

/** Incremental: the summary so far and what came after it. */
export const SummaryRequest = z.object({ previous: SummaryAnswer.nullish(), messages: ExtractionRequest.shape.messages, zone: z.string() })
export type SummaryRequest = z.infer<typeof SummaryRequest>

const answers = { memory_extraction: ExtractionAnswer, memory_dedupe: DedupeAnswer, conversation_summary: SummaryAnswer }

type Json = z.core.util.JSONType

/** The `response_format` of a request for this answer. */
export function responseFormatOf(name: ModelAnswerName): {
  type: 'json_schema'
  json_schema: { name: ModelAnswerName; schema: { [key: string]: Json } }
} {
  const schema: { [key: string]: Json } = JSON.parse(JSON.stringify(z.toJSONSchema(answers[name])))
  // The dialect's address is of no use to a provider, and some refuse it.
  delete schema.$schema
  return { type: 'json_schema', json_schema: { name, schema } }
}
