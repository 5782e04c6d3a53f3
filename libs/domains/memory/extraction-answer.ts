import { z } from 'zod'
import { DedupeAnswer, ExtractionProposal } from '#contracts'
import type { DedupeDecision } from '#contracts'
import { normalisedText } from './dedupe.ts'
import { isEmptyOfMeaning, scrub } from './scrub.ts'
import { saysTheSame } from './selection.ts'
import { tokenize } from './tokenize.ts'

/** Why a proposal is not taken; recorded, never silent. */
export type DropReason = 'invalid' | 'no_source' | 'outside_canon' | 'echo' | 'empty_after_scrub'

export type ReadAnswer<T> = { ok: true; value: T } | { ok: false; problems: string[] }

/** Most proposals taken from one answer. */
export const PROPOSALS_MAX = 50

/** A proposal as a model gives it; one without any source is told apart from one that does not parse. */
const Proposed = ExtractionProposal.extend({ source_message_ids: z.array(z.string()).max(100) })
export type Proposed = z.infer<typeof Proposed>

/** An answer of extraction, read: what fits the schema, how many do not, and what is wrong with them. */
export type ReadProposals = { proposals: Proposed[]; invalid: number; problems: string[] }

/** A person's message that a proposal may rest on. */
export type CitableMessage = { id: string; role: 'user' | 'character' }

const fence = /^\s*```[a-z]*\s*\n?([\s\S]*?)\n?```\s*$/i

/** The JSON object of a model's answer; a code fence or words around it are passed over. */
export function readJsonObject(text: string): ReadAnswer<Record<string, unknown>> {
  const inner = fence.exec(text)?.[1] ?? text
  const body = inner.slice(Math.max(inner.indexOf('{'), 0), inner.lastIndexOf('}') + 1)
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ok: true, value: { ...value } }
    return { ok: false, problems: ['the answer is no JSON object'] }
  } catch (error) {
    return { ok: false, problems: [`the answer is no JSON object: ${error instanceof Error ? error.message.slice(0, 200) : 'unreadable'}`] }
  }
}

/**
 * Reads an answer of extraction. Not ok where it has no list of proposals at all; otherwise each proposal is judged for itself, so that one
 * bad one does not take the others with it.
 */
export function readProposals(text: string): ReadAnswer<ReadProposals> {
  const object = readJsonObject(text)
  if (!object.ok) return object
  const list = object.value.proposals
  if (!Array.isArray(list)) return { ok: false, problems: ['"proposals" is missing or no list'] }
  const proposals: Proposed[] = []
  const problems: string[] = []
  for (const [index, item] of list.slice(0, PROPOSALS_MAX).entries()) {
    const parsed = Proposed.safeParse(item)
    if (!parsed.success) problems.push(...issues(`proposals[${index}]`, parsed.error))
    else if (parsed.data.content.trim() === '') problems.push(`proposals[${index}].content is blank`)
    else proposals.push({ ...parsed.data, content: parsed.data.content.toWellFormed().trim() })
  }
  if (list.length > PROPOSALS_MAX) problems.push(`there are ${list.length} proposals, at most ${PROPOSALS_MAX} are taken`)
  return { ok: true, value: { proposals, invalid: list.length - proposals.length, problems } }
}

/** Reads an answer of dedupe; whether its decisions can be carried out is for `placeProposals` to say. */
export function readDecisions(text: string): ReadAnswer<DedupeDecision[]> {
  const object = readJsonObject(text)
  if (!object.ok) return object
  const parsed = DedupeAnswer.safeParse(object.value)
  return parsed.success ? { ok: true, value: parsed.data.decisions } : { ok: false, problems: issues('', parsed.error) }
}

function issues(prefix: string, error: z.ZodError): string[] {
  return error.issues.map((issue) => {
    const path = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
    return `${prefix}${path}: ${issue.message}`.replace(/^\./, '')
  })
}

/** Proposals whose text is scrubbed and whose sources are real, and why the others were dropped. */
export type Sifted = { kept: Proposed[]; dropped: DropReason[] }

/**
 * Keeps the proposals that may become memories. Every source is a message of the canonical scope (cases R3, R20); a sentence of the prompt
 * is an echo (R14), and so is a memory that the model was shown and that only the character repeats; secrets are masked (R13).
 */
export function sift(input: {
  proposals: readonly Proposed[]
  messages: readonly CitableMessage[]
  instructions: string
  shown: readonly string[]
}): Sifted {
  const roles = new Map(input.messages.map((message) => [message.id, message.role]))
  const isPrompt = echoOf([input.instructions])
  const wasShown = echoOf(input.shown)
  const sifted: Sifted = { kept: [], dropped: [] }
  for (const proposal of input.proposals) {
    const sources = [...new Set(proposal.source_message_ids.map((id) => id.toLowerCase()))]
    const { text } = scrub(proposal.content)
    const userSaidIt = sources.some((id) => roles.get(id) === 'user')
    if (sources.length === 0) sifted.dropped.push('no_source')
    else if (sources.some((id) => !roles.has(id))) sifted.dropped.push('outside_canon')
    else if (isPrompt(text) || (!userSaidIt && wasShown(text))) sifted.dropped.push('echo')
    else if (isEmptyOfMeaning(text)) sifted.dropped.push('empty_after_scrub')
    else sifted.kept.push({ ...proposal, content: text, source_message_ids: sources })
  }
  return sifted
}

/** What is wrong with a text that a model wrote for a merged memory; null where nothing is. */
export function textProblem(text: string, instructions: string): string | null {
  if (isEmptyOfMeaning(scrub(text).text)) return 'the content says nothing'
  return echoOf([instructions])(text) ? 'the content repeats these instructions' : null
}

/** Fewest letters of a text that can be told to be a quotation. */
const QUOTABLE_LENGTH = 12

/** Says of a text whether it repeats a sentence, or a part of one, of these texts. */
function echoOf(texts: readonly string[]): (text: string) => boolean {
  const wholes = texts.map(normalisedText)
  const sentences = texts
    .flatMap((text) => text.split(/(?<=[.!?。！？])\s+|\n+/u))
    .map((sentence) => new Set(tokenize(sentence).counts.keys()))
  return (text) => {
    const bare = normalisedText(text)
    if (bare.length >= QUOTABLE_LENGTH && wholes.some((whole) => whole.includes(bare))) return true
    const words = new Set(tokenize(text).counts.keys())
    return words.size > 2 && sentences.some((sentence) => saysTheSame(sentence, words))
  }
}
