import type { Digest } from '#contracts'
import type { RequestMessage } from '../projection/layout-1.ts'
import type { Layout } from '../projection/layouts.ts'
import type { ContinuationMessage, ConversationMessage, CountTokens } from './entity.ts'
import { MESSAGE_TOKENS } from './prepare-entities.ts'
import { MissingUserMessageError, NotAncestorsError, UnreferencedTextError } from './prompt-errors.ts'

/** A real conversation message, the unit that depth counts: a node that projects as something, or what the run said since. */
export type ConversationUnit =
  | {
      kind: 'node'
      node: ConversationMessage & { digest: Digest; content_id: string }
      messages: readonly RequestMessage[]
      tokens: number
    }
  | { kind: 'said'; said: ContinuationMessage; messages: readonly RequestMessage[]; tokens: number }

function assertOneLine(conversation: readonly ConversationMessage[]): void {
  for (const [index, message] of conversation.entries()) {
    const above = conversation[index - 1]
    if (above && message.parent_id !== above.node_id) {
      throw new NotAncestorsError({ nodeId: message.node_id, expectedParentId: above.node_id, parentId: message.parent_id })
    }
  }
}

function nodeTokens(node: ConversationMessage, messages: readonly RequestMessage[], countTokens: CountTokens): number {
  const envelopes = messages.length * MESSAGE_TOKENS
  if (node.tokens !== undefined) return envelopes + node.tokens
  // The content's digest stands for a text only where the text is the whole content.
  const digest = node.parts.length === 1 ? (node.digest ?? undefined) : undefined
  return messages.reduce((sum, { content }) => sum + countTokens(content, digest), envelopes)
}

/**
 * The conversation as units, oldest first. Throws NotAncestorsError where the nodes are not one line of ancestors (M6), and
 * UnreferencedTextError where a node has text that no content records (M10).
 */
export function conversationUnits(input: {
  conversation: readonly ConversationMessage[]
  continuation: readonly ContinuationMessage[]
  layout: Layout
  countTokens: CountTokens
}): ConversationUnit[] {
  assertOneLine(input.conversation)
  const units: ConversationUnit[] = []
  for (const node of input.conversation) {
    const messages = input.layout.nodeMessages(node)
    if (messages.length === 0) continue
    const { content_id, digest } = node
    if (content_id === null || digest === null) throw new UnreferencedTextError(node.node_id)
    units.push({ kind: 'node', node: { ...node, content_id, digest }, messages, tokens: nodeTokens(node, messages, input.countTokens) })
  }
  for (const said of input.continuation) {
    if (said.text.trim() === '') continue
    const tokens = MESSAGE_TOKENS + input.countTokens(said.text, said.contentRef?.digest)
    units.push({ kind: 'said', said, messages: [saidMessage(said)], tokens })
  }
  return units
}

function saidMessage({ kind, text }: ContinuationMessage): RequestMessage {
  switch (kind) {
    case 'said':
      return { role: 'assistant', content: text }
    case 'steer':
      return { role: 'user', content: text }
    case 'acted':
      return { role: 'assistant', content: text, json: true }
    case 'observed':
      return { role: 'tool', content: text, json: true }
  }
}

/**
 * Where the mandatory end of the conversation begins: at the question, that is the newest node of the user. What follows it goes with it,
 * since history has no holes. Throws MissingUserMessageError where there is none.
 */
export function questionIndex(units: readonly ConversationUnit[]): number {
  const index = units.findLastIndex((unit) => unit.kind === 'node' && unit.node.role === 'user')
  if (index === -1) throw new MissingUserMessageError()
  return index
}
