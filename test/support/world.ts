/** A story's two sides: the system, and the provider that it talks to. */
import type { CommandAccepted, RunAccepted, RunStreamEvent, RunView } from '#contracts'
import type { RunLimits } from '#kernel/reducer/commands'
import type { FakeResponse, FakeUpstream } from './fake-upstream.ts'
import { startFakeUpstream } from './fake-upstream.ts'
import { ask, call, follow, spoken } from './story.ts'
import { startTestSystem } from './system.ts'
import type { TestSystem, TestSystemOptions } from './system.ts'

export type World = { system: TestSystem; upstream: FakeUpstream; close(): Promise<void> }

/** A system whose model is a scripted provider; requests of jobs are answered aside. */
export async function startWorld(options: Omit<TestSystemOptions, 'model'> = {}): Promise<World> {
  const upstream = await startFakeUpstream({ answersJobs: true })
  const system = await startTestSystem({ ...options, model: upstream.baseUrl })
  return {
    system,
    upstream,
    close: async () => {
      await system.close()
      await upstream.close()
    },
  }
}

/** Words as a provider's pieces. */
export function words(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `t${index} `)
}

/** Scripts answers, starts a run and waits until its request is with the provider. */
export async function requested<Accepted>(
  { upstream }: Pick<World, 'upstream'>,
  responses: readonly FakeResponse[],
  start: () => Promise<Accepted>,
): Promise<Accepted> {
  const next = upstream.requests.length
  upstream.script(...responses)
  const accepted = await start()
  await upstream.request(next)
  return accepted
}

/** Asks in a tree and waits until the request is with the provider. */
export function asked(world: World, treeId: string, text: string, ...responses: FakeResponse[]): Promise<RunAccepted> {
  return requested(world, responses, () => ask(world.system, treeId, text))
}

export function cancel({ system }: Pick<World, 'system'>, runId: string): Promise<CommandAccepted> {
  return call<CommandAccepted>(system, 'POST', `/v1/runs/${runId}/cancel`)
}

export function steer({ system }: Pick<World, 'system'>, runId: string, text: string): Promise<CommandAccepted> {
  return call<CommandAccepted>(system, 'POST', `/v1/runs/${runId}/steer`, { text }, { status: 202 })
}

export function run({ system }: Pick<World, 'system'>, runId: string): Promise<RunView> {
  return call<RunView>(system, 'GET', `/v1/runs/${runId}`)
}

/** Follows until so much text was shown. */
export function heard({ system }: Pick<World, 'system'>, runId: string, text: string): Promise<RunStreamEvent[]> {
  return follow(system, runId, { until: (_, all) => spoken(all) === text })
}

/** Lets runs start with other limits than the platform's, as a profile would, while `work` goes on. */
export async function limited({ system }: Pick<World, 'system'>, limits: Partial<RunLimits>, work: () => Promise<void>): Promise<void> {
  const { projector } = system.system.conversation
  const pin = projector.pin.bind(projector)
  projector.pin = async (row) => {
    const pinned = await pin(row)
    return { ...pinned, limits: { ...pinned.limits, ...limits } }
  }
  await work().finally(() => Reflect.deleteProperty(projector, 'pin'))
}
