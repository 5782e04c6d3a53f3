import { TASK_CONTRACT_VERSION } from '#contracts'
import type { CreateTask, Trust } from '#contracts'
import type { TaskRow } from '#kernel/ports/task-store'
import { needsOf } from '#kernel/tasks/capability-set'
import type { TaskDeps } from './deps.ts'
import { appendTaskEvents } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'

/** Where handed-on work comes from: the run that wanted it, by which action, how deep, and under which tree's grants. */
export type TaskLineage = Pick<TaskRow, 'parent_run_id' | 'parent_action_id' | 'depth' | 'grant_tree_id'>

/** Work that its owner asks for by themselves. */
export const rootLineage: TaskLineage = { parent_run_id: null, parent_action_id: null, depth: 0, grant_tree_id: null }

/** Stores what a task is about, and records it. Inside a unit of work. Answers its id. */
export async function writeTask(
  deps: TaskDeps,
  ownerId: string,
  given: CreateTask,
  from: { trust: Trust; lineage: TaskLineage; derivedFrom: readonly string[] },
): Promise<string> {
  const { store, contents, ids, clock } = deps
  const id = ids.next()
  const text = (content: string, mediaType = 'text/plain') =>
    contents.put({ owner_id: ownerId, media_type: mediaType, content, salt: ids.bytes(32), derived_from: [...from.derivedFrom] })
  const instruction = await text(given.instruction)
  const acceptance = await text(JSON.stringify(given.acceptance), 'application/json')
  const inputs: string[] = []
  for (const input of given.inputs) inputs.push((await text(input.text, input.media_type)).id)
  const tools = [...new Set(given.tools)].sort()
  const task = {
    id,
    owner_id: ownerId,
    character_id: given.character_id,
    contract_version: TASK_CONTRACT_VERSION,
    requested_by: ownerId,
    commit_authority: ownerId,
    ...from.lineage,
    instruction_content_id: instruction.id,
    acceptance_content_id: acceptance.id,
    input_refs: inputs,
    trust: from.trust,
    risk: given.risk,
    needs: needsOf({ risk: given.risk, tools, asked: given.needs }),
    tools,
    classification: given.classification,
    retention: given.retention,
    max_cost_micros: given.budget.max_cost_micros,
    max_actions: given.budget.max_actions,
    max_repairs: given.max_repairs,
    created_at: clock.now(),
  }
  await store.insertTask(task)
  const created: TaskEvent = {
    type: 'task.created',
    payload: {
      task_id: id,
      contract_version: task.contract_version,
      requested_by: ownerId,
      commit_authority: ownerId,
      parent_run_id: task.parent_run_id,
      parent_action_id: task.parent_action_id,
      risk: task.risk,
      tools,
      max_cost_micros: task.max_cost_micros,
      max_actions: task.max_actions,
      instruction_content_id: instruction.id,
      acceptance_content_id: acceptance.id,
    },
    content_digests: [instruction, acceptance].map((content) => ({
      content_id: content.id,
      digest: Buffer.from(content.digest).toString('hex'),
    })),
  }
  const isHandedOn = task.parent_run_id !== null
  await appendTaskEvents(deps, task, [created], { actor: isHandedOn ? 'agent' : 'owner', tag: isHandedOn ? 'delegate' : 'create_task' })
  return id
}
