/** A character that hands work on, beside a provider that answers each of the three who ask it in its own way. */
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import type { EventPayload, EvidencePackage, RunAccepted, RunView, TaskView } from '#contracts'
import type { DelegationOrder } from '#domains/tasks/delegation.service'
import type { FakeRequest, FakeResponse, FakeUpstream, Gate } from './fake-upstream.ts'
import { createGate, startFakeUpstream } from './fake-upstream.ts'
import { fakeContract, fakeTools } from './fake-target.ts'
import type { FakeTool } from './fake-target.ts'
import { closeWhole } from './replays.ts'
import { answer, ask, call, eventually, newTree, runEnded } from './story.ts'
import { startTestSystem } from './system.ts'
import type { TestSystem } from './system.ts'
import { calling, grant } from './tool-calls.ts'

/** What the provider says to a conversation, to a helper in the background, and to a question about a result. */
export type Minds = { character(request: Asked): FakeResponse; helper(request: Asked): FakeResponse; judge(): FakeResponse }
/** A request, with how many results of tools it holds. */
export type Asked = { body: string; results: number }

export const found = answer('The third door.')
export const quiet: Minds = { character: () => answer('Well.'), helper: () => found, judge: () => answer('{"meets":true}') }

export const delegating = (...orders: Record<string, unknown>[]): FakeResponse =>
  calling(orders.map((order, index) => ({ id: `call_${index}`, name: 'delegate', arguments: JSON.stringify(order) })))

/** A character that hands on what is given, and then says a word. */
export const handsOn =
  (...orders: Record<string, unknown>[]) =>
  ({ results }: Asked): FakeResponse =>
    results === 0 ? delegating(...orders) : answer('It is under way.')

export const held = (gate: Gate, response: FakeResponse): FakeResponse => ({ ...response, beforeHeaders: gate })

export class DelegationWorld {
  readonly system: TestSystem
  readonly treeId: string
  readonly characterId: string
  readonly #upstream: FakeUpstream
  readonly #tools: ReadonlyMap<string, FakeTool>
  readonly #mind: { now: Minds }

  private constructor(parts: {
    system: TestSystem
    upstream: FakeUpstream
    tools: ReadonlyMap<string, FakeTool>
    mind: { now: Minds }
    tree: { id: string; character_ids: readonly string[] }
  }) {
    this.system = parts.system
    this.#upstream = parts.upstream
    this.#tools = parts.tools
    this.#mind = parts.mind
    this.treeId = parts.tree.id
    this.characterId = parts.tree.character_ids[0] ?? ''
  }

  static async open(): Promise<DelegationWorld> {
    const tools = fakeTools(
      fakeContract('look.up'),
      fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared', priceMicros: 10 }),
    )
    const mind = { now: quiet }
    const upstream = await startFakeUpstream({ answers: (request) => routed(mind.now, request) })
    const system = await startTestSystem({
      model: upstream.baseUrl,
      overrides: { tools: tools.catalogue },
      environment: { LINGTAI_MODEL_PRICE: '1000000,1000000' },
    })
    const tree = await newTree(system)
    await grant(system, '/v1/grant')
    await grant(system, `/v1/characters/${tree.character_ids[0]}/grant`, { tools: ['delegate', 'look.up', 'mail.send'] })
    return new DelegationWorld({ system, upstream, tools: tools.tools, mind, tree })
  }

  async close(): Promise<void> {
    await this.system.close()
    await this.#upstream.close()
  }

  /** How it is before each test. */
  async prepare(): Promise<void> {
    this.thinks({})
    for (const tool of this.#tools.values()) tool.happened = []
    await grant(this.system, `/v1/trees/${this.treeId}/grant`)
  }

  thinks(minds: Partial<Minds>): void {
    this.#mind.now = { ...quiet, ...minds }
  }

  tool(name: string): FakeTool {
    const known = this.#tools.get(name)
    if (!known) throw new Error(`no tool ${name}`)
    return known
  }

  ask(text: string): Promise<RunAccepted> {
    return ask(this.system, this.treeId, text)
  }

  read(taskId: string): Promise<TaskView> {
    return call<TaskView>(this.system, 'GET', `/v1/tasks/${taskId}`)
  }

  evidence(taskId: string): Promise<EvidencePackage> {
    return call<EvidencePackage>(this.system, 'GET', `/v1/tasks/${taskId}/evidence`)
  }

  /** What a run handed on, oldest first. */
  async childrenOf(runId: string): Promise<TaskView[]> {
    const { items } = await call<{ items: TaskView[] }>(this.system, 'GET', '/v1/tasks?limit=100')
    return items.filter((task) => task.parent_run_id === runId).toReversed()
  }

  async onlyChild(runId: string): Promise<TaskView> {
    const children = await this.childrenOf(runId)
    expect(children).toHaveLength(1)
    if (!children[0]) throw new Error('nothing was handed on')
    return children[0]
  }

  reaches(taskId: string, status: TaskView['status']): Promise<TaskView> {
    return eventually(async () => {
      const now = await this.read(taskId)
      return now.status === status && now
    }, `a task that is ${status}`)
  }

  async told<Type extends 'tool.executed' | 'run.requested' | 'budget.settled' | 'budget.exhausted'>(runId: string, type: Type) {
    const events = await this.system.system.log.read(`run:${runId}`, { types: [type] })
    return events.map(({ record }) => record.payload as EventPayload<Type>)
  }

  /** The texts of what a run saw of its tools. */
  async observed(runId: string): Promise<string[]> {
    const executed = await this.told(runId, 'tool.executed')
    const stored = await this.system.system.contents.get(executed.flatMap(({ content_id: id }) => id ?? []))
    return executed.map(({ content_id: id, reason }) => (id === null ? (reason ?? '') : (stored.get(id)?.body ?? '')))
  }

  async runOf(taskId: string): Promise<string> {
    return (await this.evidence(taskId)).attempts[0]?.attempt_id ?? ''
  }

  /** A run that is under way, whatever it is handed on, until `end`. */
  async underWay(): Promise<{ run: RunAccepted; end: () => Promise<RunView> }> {
    const gate = createGate()
    this.thinks({ character: () => held(gate, answer('Done.')) })
    const before = this.#upstream.requests.length
    const run = await this.ask('Wait.')
    await this.#upstream.request(before)
    return {
      run,
      end: () => {
        gate.open()
        return runEnded(this.system, run.run_id)
      },
    }
  }

  /** As the tool would order it by one of the run's actions. */
  async order(runId: string, changes: Partial<DelegationOrder> = {}): Promise<DelegationOrder> {
    const { ownerId, system } = this.system
    const content = await system.contents.put({ owner_id: ownerId, media_type: 'application/json', content: '{}' })
    return {
      ownerId,
      runId,
      effectId: system.ids.next(),
      actionId: system.ids.next(),
      argumentsContentId: content.id,
      trust: 'workspace',
      instruction: 'Find the door.',
      inputs: [],
      tools: [],
      criterion: null,
      max_cost_micros: null,
      max_actions: null,
      ...changes,
    }
  }
}

function routed(minds: Minds, { bodyText }: FakeRequest): FakeResponse {
  const { messages } = JSON.parse(bodyText) as { messages: { role: string; content: string | null }[] }
  const first = messages[0]?.content ?? ''
  const asked = { body: bodyText, results: messages.filter(({ role }) => role === 'tool').length }
  if (first.startsWith('You check whether')) return minds.judge()
  return first.startsWith('You carry out a task') ? minds.helper(asked) : minds.character(asked)
}

/** Opens the world for a file's tests; the record and every replay are looked at after each. */
export function delegationStory(): () => DelegationWorld {
  let world: DelegationWorld | undefined
  const opened = (): DelegationWorld => {
    if (!world) throw new Error('the world of handed-on work is not open yet')
    return world
  }
  beforeAll(async () => {
    world = await DelegationWorld.open()
  })
  afterAll(() => closeWhole(opened()))
  beforeEach(() => opened().prepare())
  return opened
}
