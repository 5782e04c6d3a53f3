/** One thing of each kind that belongs to the first owner, by the name that the API's paths have for it. */
import type {
  ActionView,
  CharacterView,
  CreatedToken,
  GrantView,
  LorebookView,
  NodeView,
  TaskView,
  ToolSourceView,
  TreeView,
} from '#contracts'
import { askAndHear, eventually } from './story.ts'
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
  const { accepted } = await askAndHear(lingtai, tree.id, 'Please remember that I like walking at dawn.')
  const { canonization } = await make<{ canonization: { id: string } }>('POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
  const memory = await eventually(async () => (await make<{ items: { id: string }[] }>('GET', '/v1/memories')).items[0], 'a memory')
  const source = await make<ToolSourceView>('POST', '/v1/tool-sources', {
    name: 'owned',
    http: { tools: [{ name: 'look', description: 'Looks.', method: 'GET', url: 'https://example.com/', parameters: { type: 'object' } }] },
  })
  const task = await make<TaskView>('POST', '/v1/tasks', {
    character_id: character.id,
    instruction: 'Look it up.',
    tools: ['clock'],
    budget: { max_cost_micros: 10 },
  })
  await make('POST', `/v1/tasks/${task.task_id}/attempts`, {})
  const granted = async (path: string, changes: object): Promise<void> => {
    const { version } = await make<GrantView>('GET', path)
    await make('PUT', path, { mode: 'default', classes: ['read_only'], tools: null, exact: null, version, ...changes })
  }
  await granted('/v1/grant', {})
  await granted(`/v1/characters/${character.id}/grant`, { tools: ['clock'] })
  const submit = (key: string) => make<ActionView>('POST', `/v1/tasks/${task.task_id}/actions`, { key, tool: 'clock', arguments: {} })
  const action = await submit('owned')
  await granted('/v1/grant', { class_rules: [{ capability: 'read_only', verdict: 'ask' }] })
  const asked = await submit('owned-question')
  if (action.effect_id === null || asked.approval_id === null) throw new Error('the clock was not read, or nobody was asked')
  return {
    characters: character.id,
    tasks: task.task_id,
    'task-actions': action.action_id,
    effects: action.effect_id,
    approvals: asked.approval_id,
    tokens: token.id,
    lorebooks: lorebook.id,
    trees: tree.id,
    nodes: greeting.id,
    canonizations: canonization.id,
    runs: accepted.run_id,
    memories: memory.id,
    'tool-sources': source.id,
  }
}
