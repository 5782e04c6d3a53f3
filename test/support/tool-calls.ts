/** A model that calls tools, and what characters are given for it. */
import type { GrantView, SetGrant, TreeView } from '#contracts'
import { DONE, deltaChunk, finishChunk, textChunk, usageChunk } from './fake-upstream.ts'
import type { FakeResponse } from './fake-upstream.ts'
import type { Client } from './story.ts'
import { call, newTree } from './story.ts'

/** What the provider sends when the model calls tools, after having `said` something. */
export function calling(
  calls: readonly { name: string; arguments: string; id?: string }[],
  said = '',
  finish = 'tool_calls',
): FakeResponse {
  const chunks = calls.map(({ name, arguments: text, id = 'call_1' }, index) =>
    deltaChunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }] }),
  )
  return {
    headers: { 'content-type': 'text/event-stream' },
    steps: [...(said === '' ? [] : [textChunk(said)]), ...chunks, finishChunk(finish), usageChunk(40, 8), DONE],
  }
}

export const everyClass: SetGrant['classes'] = [
  'read_only',
  'reversible_local',
  'code_executing',
  'trust_mutating',
  'irreversible_external',
]

/** Sets what a place grants: every class, no tool by name, nothing without a question, but for `changes`. */
export async function grant(system: Client, path: string, changes: Partial<SetGrant> = {}): Promise<GrantView> {
  const { version } = await call<GrantView>(system, 'GET', path)
  return call<GrantView>(system, 'PUT', path, { mode: 'default', classes: everyClass, tools: null, exact: null, version, ...changes })
}

/** A tree whose character was given these tools by an owner who grants every class. */
export async function treeWithTools(system: Client, tools: readonly string[], changes: Partial<SetGrant> = {}): Promise<TreeView> {
  const tree = await newTree(system)
  await grant(system, '/v1/grant')
  await grant(system, `/v1/characters/${tree.character_ids[0]}/grant`, { tools: [...tools], ...changes })
  return tree
}
