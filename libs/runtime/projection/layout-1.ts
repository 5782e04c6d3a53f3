import type { NodePart, NodeRole } from '#contracts'

export type RequestRole = 'system' | 'user' | 'assistant' | 'tool'

/**
 * One message of a request, in the order and spelling in which it is sent. `json`: the content is the whole message as JSON text, since tool
 * calls and their results are more than a role and a text.
 */
export type RequestMessage = { role: RequestRole; content: string; json?: true }

/** What of a node decides its messages. */
export type ProjectableNode = { role: NodeRole; parts: readonly NodePart[] }

const speaker: Record<NodeRole, RequestRole | null> = { none: null, user: 'user', character: 'assistant', narrator: 'system' }

/** Spelled out instead of trim(), whose idea of white space follows the engine's Unicode version. */
const somethingVisible = /[^ \t\r\n]/

/**
 * Layout 1, node → messages: one message per non-blank part, in order. Text speaks in the node's role, an interjection (steer) in the
 * user's. Reasoning is not sent, tool parts and media are not part of this layout; a root, a deleted and an empty node are nothing.
 *
 * Frozen: recorded requests are rebuilt with it (decision 14). A change is a new layout.
 */
export function nodeMessages(node: ProjectableNode): RequestMessage[] {
  const own = speaker[node.role]
  if (own === null) return []
  const messages: RequestMessage[] = []
  for (const part of node.parts) {
    if (part.kind !== 'text' && part.kind !== 'steer') continue
    if (somethingVisible.test(part.text)) messages.push({ role: part.kind === 'steer' ? 'user' : own, content: part.text })
  }
  return messages
}

/**
 * Layout 1, body: the frame's own bytes with `messages` as its last member, so that consecutive requests of one tree share their beginning.
 * `frame` is the JSON text of a non-empty object without messages, with no space around it. Frozen like `nodeMessages`.
 */
export function renderBody(frame: string, messages: readonly RequestMessage[]): string {
  const rendered = messages.map(({ role, content, json }) => (json ? content : JSON.stringify({ role, content }))).join(',')
  return `${frame.slice(0, -1)},"messages":[${rendered}]}`
}
