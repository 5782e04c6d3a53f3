/** One thing of each kind that belongs to the first owner, by the name that the API's paths have for it. */
import type { CharacterView, CreatedToken, LorebookView, NodeView, RunAccepted, TreeView } from '#contracts'
import type { TestSystem } from './system.ts'

/** `characters` → its id, for `/v1/characters/{id}` and what is below it. */
export async function ownedThings(lingtai: TestSystem): Promise<Record<string, string>> {
  const make = async <View>(method: string, path: string, body?: unknown): Promise<View> => {
    const answer = await lingtai.call(method, path, { body })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.json() as View
  }
  const character = await make<CharacterView>('POST', '/v1/characters', { name: 'Owned', first_message: 'Hello.' })
  const token = await make<CreatedToken>('POST', '/v1/tokens', { name: 'owned' })
  const { lorebook } = await make<{ lorebook: LorebookView }>('POST', '/v1/lorebooks/import', { entries: {} })
  const tree = await make<TreeView>('POST', '/v1/trees', { character_id: character.id })
  const { nodes } = await make<{ nodes: NodeView[] }>('GET', `/v1/trees/${tree.id}/path`)
  const greeting = nodes.at(-1)
  if (!greeting) throw new Error('the tree begins with a greeting')
  const { canonization } = await make<{ canonization: { id: string } }>('POST', `/v1/nodes/${greeting.id}/canonize`)
  const run = await make<RunAccepted>('POST', `/v1/trees/${tree.id}/runs`, { text: 'Who are you?' })
  return {
    characters: character.id,
    tokens: token.id,
    lorebooks: lorebook.id,
    trees: tree.id,
    nodes: greeting.id,
    canonizations: canonization.id,
    runs: run.run_id,
  }
}
