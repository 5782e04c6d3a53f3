/** Control planes of delegated work on one database, beside a world that counts what really happened to it (cases E1–E20). */
import type { ActionView, ApprovalView, CreateTask, SetGrant, SubmitAction, TaskView } from '#contracts'
import { CreateTask as CreateTaskSchema, StartAttempt, SubmitAction as SubmitActionSchema } from '#contracts'
import type { TaskPolicy } from '#domains/tasks/deps'
import type { TaskService } from '#domains/tasks/task.service'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'
import type { Overrides } from '../../apps/bff/composition/foundation.ts'
import { fakeContract, fakeTools } from './fake-target.ts'
import type { FakeTool, FakeTools } from './fake-target.ts'
import { openStore } from './system.ts'
import type { Store } from './system.ts'

/** One process, as far as the database knows. `works`: its background work goes on. */
export type Plane = { system: System; tasks: TaskService; ownerId: string }

export const everyClass: SetGrant['classes'] = [
  'read_only',
  'reversible_local',
  'code_executing',
  'trust_mutating',
  'irreversible_external',
]

export class TaskWorld {
  readonly tools: FakeTools
  readonly #store: Store
  readonly #environment: Record<string, string>
  readonly #opened: System[] = []

  private constructor(store: Store, tools: FakeTools, environment: Record<string, string>) {
    this.#store = store
    this.tools = tools
    this.#environment = environment
  }

  static async open(environment: Record<string, string> = {}): Promise<TaskWorld> {
    const tools = fakeTools(
      fakeContract('look.up'),
      fakeContract('look.paid', { priceMicros: 5 }),
      fakeContract('pay', { capability: 'reversible_local', undoable: true, consequence: 'lasting', priceMicros: 10 }),
      fakeContract('post', { capability: 'reversible_local', undoable: true, consequence: 'lasting', priceMicros: 10 }),
      fakeContract('unpriced', { capability: 'reversible_local', undoable: true, consequence: 'lasting', priceMicros: null }),
      fakeContract('mail.send', {
        capability: 'irreversible_external',
        consequence: 'lasting',
        egress: 'declared',
        priceMicros: 10,
      }),
    )
    return new TaskWorld(await openStore(), tools, environment)
  }

  /** Another control plane on the same database: what a restart is, or a replica. */
  async plane(options: { works?: boolean; policy?: TaskPolicy; overrides?: Overrides } = {}): Promise<Plane> {
    const system = await composeSystem({
      config: loadConfig({ PORT: '0', LINGTAI_HOME: this.#store.home, ...this.#store.environment, ...this.#environment }),
      logger: createLogger('silent'),
      overrides: {
        tools: this.tools.catalogue,
        ...options.overrides,
        ...(options.policy ? { policy: options.policy } : {}),
        ...(this.#store.connection ? { connection: this.#store.connection } : {}),
      },
    })
    this.#opened.push(system)
    if (options.works !== false) await system.lifecycle.startWork('all')
    return { system, tasks: system.tasks.tasks, ownerId: system.firstOwner.id }
  }

  async close(): Promise<void> {
    for (const system of this.#opened.toReversed()) await system.close()
    await this.#store.close()
  }

  tool(name: string): FakeTool {
    const found = this.tools.tools.get(name)
    if (!found) throw new Error(`no tool ${name}`)
    return found
  }
}

export async function characterOf({ system, ownerId }: Plane): Promise<string> {
  const [row] = await system.database.query<{ id: string }>(
    'SELECT id FROM characters WHERE owner_id = $1::uuid AND deleted_at IS NULL ORDER BY id LIMIT 1',
    [ownerId],
  )
  if (!row) throw new Error('the owner has no character')
  return row.id
}

/** What the owner grants: all classes at most, and to the character every tool by name. */
export async function grantAll(plane: Plane, tools: readonly string[], changes: Partial<SetGrant> = {}): Promise<void> {
  const { grants } = plane.system.conversation.actions
  const characterId = await characterOf(plane)
  const set = async (scope: 'owner' | 'character', scopeId: string, own: Partial<SetGrant>): Promise<void> => {
    const { version } = await grants.get(plane.ownerId, scope, scopeId)
    const grant = {
      mode: 'default' as const,
      classes: everyClass,
      tools: null,
      exact: null,
      class_rules: [],
      max_cost_micros: null,
      version,
    }
    await grants.set(plane.ownerId, scope, scopeId, { ...grant, ...own })
  }
  await set('owner', plane.ownerId, changes)
  await set('character', characterId, { tools: [...tools] })
}

/** A task with an attempt under way. */
export async function startedTask(
  plane: Plane,
  tools: readonly string[],
  changes: Partial<Omit<CreateTask, 'budget'>> & { budget?: Partial<CreateTask['budget']> } = {},
): Promise<TaskView> {
  const task = await plane.tasks.create(
    plane.ownerId,
    CreateTaskSchema.parse({
      character_id: await characterOf(plane),
      instruction: 'Do it.',
      tools: [...tools],
      ...changes,
      budget: { ...changes.budget },
    }),
  )
  await plane.tasks.start(plane.ownerId, task.task_id, StartAttempt.parse({}))
  return task
}

export function submit(
  plane: Plane,
  task: Pick<TaskView, 'task_id'>,
  given: Partial<SubmitAction> & { key: string; tool: string },
): Promise<ActionView> {
  return plane.tasks.submit(plane.ownerId, task.task_id, SubmitActionSchema.parse({ arguments: {}, ...given }))
}

export async function approvalOf(plane: Plane, action: Pick<ActionView, 'approval_id'>): Promise<ApprovalView> {
  if (action.approval_id === null) throw new Error('nobody was asked')
  return plane.system.conversation.actions.approvals.get(plane.ownerId, action.approval_id)
}

export async function decide(plane: Plane, action: Pick<ActionView, 'approval_id'>, decision: 'approve' | 'refuse'): Promise<ApprovalView> {
  const approval = await approvalOf(plane, action)
  return plane.system.conversation.actions.approvals.decide(plane.ownerId, approval.id, {
    decision,
    arguments_hash: approval.arguments_hash,
  })
}

/** Whoever had effects in hand is gone for good: their claims are over, as they are a while after a crash. */
export async function claimsRunOut({ system }: Plane): Promise<void> {
  await system.database.execute(`UPDATE effects SET claim_until = clock_timestamp() - interval '1 second' WHERE claim_until IS NOT NULL`)
}
