import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { ApprovalView, GrantView, Problem, RunView } from '#contracts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { deltaChunk, DONE, finishChunk, usageChunk } from '../support/fake-upstream.ts'
import { MovedClock } from '../support/moved-clock.ts'
import { answer, askAndHear, ask, call, eventually, newTree, runEnded } from '../support/story.ts'
import { cancel, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* K5: a run that waits for a person is not resumed on a broken chain, and does not hold anybody up either. */
vi.setConfig({ testTimeout: 120_000 })

const tools = fakeTools(fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared' }))
const clock = new MovedClock()
let world: World

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue, clock } })
})
afterAll(() => world.close())

/** A run that waits for its owner's yes, its record broken meanwhile. */
async function waiting(): Promise<{ treeId: string; runId: string; approval: ApprovalView }> {
  const { system, upstream } = world
  const tree = await newTree(system)
  const grantPath = `/v1/characters/${tree.character_ids[0]}/grant`
  for (const [path, names] of [
    ['/v1/grant', null],
    [grantPath, ['mail.send']],
  ] as const) {
    const { version } = await call<GrantView>(system, 'GET', path)
    const classes = ['read_only', 'irreversible_external']
    await call<GrantView>(system, 'PUT', path, { mode: 'default', classes, tools: names, exact: null, version })
  }
  const toolCall = {
    tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'mail_send', arguments: '{"text":"hello"}' } }],
  }
  upstream.script({
    headers: { 'content-type': 'text/event-stream' },
    steps: [deltaChunk(toolCall), finishChunk('tool_calls'), usageChunk(40, 8), DONE],
  })
  const { run_id: runId } = await ask(system, tree.id, 'Send it.')
  await eventually(async () => (await call<RunView>(system, 'GET', `/v1/runs/${runId}`)).state === 'suspended', 'the run waits')
  const page = await call<{ items: ApprovalView[] }>(system, 'GET', '/v1/approvals?state=pending')
  const approval = page.items.find((item) => item.run_id === runId)
  if (!approval) throw new Error('nobody was asked')
  await system.system.database.execute('UPDATE streams SET quarantined_at = now() WHERE stream = $1', [`run:${runId}`])
  return { treeId: tree.id, runId, approval }
}

it.each(['approve', 'refuse'] as const)('is not resumed by an answer: %s', async (decision) => {
  const { runId, approval } = await waiting()
  const body = { decision, arguments_hash: approval.arguments_hash }
  const refused = await call<Problem>(world.system, 'POST', `/v1/approvals/${approval.id}/decision`, body, { status: 409 })
  expect(refused.code).toBe('chain_broken')
  expect(await call<RunView>(world.system, 'GET', `/v1/runs/${runId}`)).toMatchObject({ state: 'suspended' })
  expect(await call<ApprovalView>(world.system, 'GET', `/v1/approvals/${approval.id}`)).toMatchObject({ state: 'pending' })
  expect(tools.tools.get('mail.send')?.happened).toEqual([])
})

it('ends without another event once the question’s time is over, or its owner cancels it', async () => {
  for (const end of [
    () => Promise.resolve(void (clock.ahead += 7 * 24 * 3_600_000)),
    async (approval: ApprovalView) => void (await cancel(world, approval.run_id)),
  ]) {
    const { runId, approval } = await waiting()
    const before = await world.system.system.log.head(`run:${runId}`)
    world.upstream.unscript()
    await end(approval)
    await world.system.system.conversation.actions.approvals.expire()
    expect(await runEnded(world.system, runId)).toMatchObject({ state: 'failed', reason: 'chain_broken' })
    expect(await world.system.system.log.head(`run:${runId}`)).toEqual(before)
    expect(tools.tools.get('mail.send')?.happened).toEqual([])
  }
  world.upstream.script(answer('Here.'))
  expect((await askAndHear(world.system, (await newTree(world.system)).id, 'Are you there?')).text).toBe('Here.')
})
