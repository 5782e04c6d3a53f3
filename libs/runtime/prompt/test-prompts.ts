import type { Id, NodePart, NodeRole } from '#contracts'
import { sha256Hex } from '#kernel/record/chain'
import { projectedContext } from '../projection/projected-context.ts'
import type { LoadedNode, Projected, ReferenceLoader } from '../projection/rebuild-request.ts'
import type { AssembleInput, Assembly } from './assemble.ts'
import type { ContentRef, ConversationMessage, PromptEntity, PromptReadings } from './entity.ts'
import type { MacroValues } from './macros.ts'

/** An id of the right form, told apart by its number. */
export const testId = (number: number): Id => `01935f00-0000-7000-8000-${number.toString(16).padStart(12, '0')}`

/** Stands for the salted digest of a content: any function of what is stored will do. */
export const testDigest = (text: string): string => sha256Hex(`salt|${text}`)

export const contentOf = (number: number, text: string): ContentRef => ({ content_id: testId(number), digest: testDigest(text) })

export const readings: PromptReadings = { now: '2026-11-29T23:05:09.007Z', zone: 'Asia/Shanghai', utcOffsetMinutes: 480, seed: 7 }

export const values: MacroValues = {
  char: { text: 'Lin', trust: 'workspace', contentIds: [testId(900)] },
  user: { text: 'Ada', trust: 'trusted', contentIds: [] },
}

/** One token a character: sums are easy to see. */
export const countCharacters = (text: string): number => text.length

export function entity(fields: Partial<PromptEntity> & Pick<PromptEntity, 'identifier' | 'text'>): PromptEntity {
  return {
    role: 'system',
    source: 'world',
    position: { at: 'relative', rank: 500 },
    expand: false,
    sourceId: null,
    contentRef: null,
    derivedFrom: [],
    trust: 'workspace',
    priority: 500,
    forbidOverride: false,
    reason: 'test',
    ...fields,
  }
}

/** An entity inside the chat. */
export const inChat = (identifier: string, depth: number, order: number, fields: Partial<PromptEntity> = {}): PromptEntity =>
  entity({ identifier, text: identifier, position: { at: 'in_chat', depth, order }, ...fields })

export type Line = { role: NodeRole; parts?: readonly NodePart[]; text?: string; partial?: boolean; deleted?: boolean; tokens?: number }

/** A path: node n has id n, content 1000 + n, and follows node n − 1. */
export function path(lines: readonly Line[]): ConversationMessage[] {
  return lines.map((line, index) => {
    const parts = line.deleted === true ? [] : (line.parts ?? [{ kind: 'text' as const, text: line.text ?? '' }])
    const stored = parts.map(({ text }) => text).join('')
    return {
      node_id: testId(index + 1),
      parent_id: index === 0 ? null : testId(index),
      role: line.role,
      parts,
      content_id: line.deleted === true ? null : testId(1001 + index),
      digest: line.deleted === true ? null : testDigest(stored),
      trust: line.role === 'user' ? 'trusted' : 'workspace',
      partial: line.partial ?? false,
      ...(line.tokens === undefined ? {} : { tokens: line.tokens }),
    }
  })
}

/** Alternating turns, oldest first, ending with the user's. */
export const chat = (...texts: string[]): ConversationMessage[] =>
  path(texts.map((text, index) => ({ role: (texts.length - index) % 2 === 1 ? 'user' : 'character', text })))

export const request = (fields: Partial<AssembleInput> & Pick<AssembleInput, 'conversation'>): AssembleInput => ({
  entities: [],
  window: 100_000,
  reserve: 1000,
  toolTokens: 0,
  countTokens: countCharacters,
  readings,
  chatKey: testId(5000),
  values,
  ...fields,
})

/** The sent messages, one line each: `role: text`. */
export const lines = (assembly: Pick<Assembly, 'messages'>): string[] => assembly.messages.map(({ role, content }) => `${role}: ${content}`)

export const testFrame = '{"model":"demo","stream":true}'

/** Records an assembly and stores what it refers to, as the runtime and the database would. */
export function recorded(
  input: AssembleInput,
  assembly: Assembly,
): { projected: Projected; contents: Map<Id, string>; nodes: ConversationMessage[] } {
  const contents = new Map<Id, string>([[testId(3000), testFrame]])
  for (const one of [...input.entities, ...(input.examples ?? [])]) if (one.contentRef) contents.set(one.contentRef.content_id, one.text)
  for (const said of input.continuation ?? []) if (said.contentRef) contents.set(said.contentRef.content_id, said.text)
  const derived = assembly.derived.map(({ text }, index) => {
    contents.set(testId(4000 + index), text)
    return contentOf(4000 + index, text)
  })
  const projected = projectedContext({
    assembly,
    derived,
    frame: contentOf(3000, testFrame),
    turn: 1,
    tokenizer: 'characters',
    readings: input.readings,
    recallAuditId: null,
  })
  return { projected, contents, nodes: [...input.conversation] }
}

/** Reads the stored texts, digests computed afresh; `erased` ids answer as erased. */
export function loaderOf(
  stored: { contents: ReadonlyMap<Id, string>; nodes: readonly ConversationMessage[] },
  erased: ReadonlySet<Id> = new Set(),
): ReferenceLoader {
  return {
    content: (id) => {
      const text = stored.contents.get(id)
      if (text === undefined) return undefined
      return erased.has(id) ? 'erased' : { text, digest: testDigest(text) }
    },
    path: ({ from_node_id, to_node_id }) => {
      const from = stored.nodes.findIndex((node) => node.node_id === from_node_id)
      const to = stored.nodes.findIndex((node) => node.node_id === to_node_id)
      if (from === -1 || to < from) return undefined
      return stored.nodes.slice(from, to + 1).map(({ node_id, role, parts }): LoadedNode => {
        if (erased.has(node_id) || (parts.length === 0 && role !== 'none')) return { node_id, role, erased: true }
        return { node_id, role, parts, digest: testDigest(parts.map(({ text }) => text).join('')), erased: false }
      })
    },
  }
}
