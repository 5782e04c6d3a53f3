/** Decisions of authority say what is understood and nothing else (case E17). */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ApprovalView, GrantView, Problem, RunView } from '#contracts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { answer, ask, call, eventually, follow } from '../support/story.ts'
import { calling, everyClass, treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const tools = fakeTools(fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared' }))
let world: World

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue } })
})
afterAll(() => world?.close())

const nobody = '01935f00-0000-7000-8000-000000000001'
const digest = 'a'.repeat(64)
const set = { mode: 'default', classes: everyClass, tools: null, exact: null, version: 0 }

it('an approval with a field that nobody knows is none: nothing happens, and the question stays', async () => {
  const tree = await treeWithTools(world.system, ['mail.send'])
  world.upstream.script(calling([{ name: 'mail_send', arguments: '{"text":"hello"}' }]), answer('Sent.'))
  const { run_id: runId } = await ask(world.system, tree.id, 'Write to her.')
  await eventually(async () => (await call<RunView>(world.system, 'GET', `/v1/runs/${runId}`)).state === 'suspended', 'the run waits')
  const page = await call<{ items: ApprovalView[] }>(world.system, 'GET', '/v1/approvals?state=pending')
  const approval = page.items.find((item) => item.run_id === runId)
  const path = `/v1/approvals/${approval?.id}/decision`
  const yes = { decision: 'approve', arguments_hash: approval?.arguments_hash }
  const refused = await call<Problem>(world.system, 'POST', path, { ...yes, constraints: {}, note: '' }, { status: 400 })
  expect(refused).toMatchObject({ code: 'validation_failed', errors: [{ path: 'constraints' }, { path: 'note' }] })
  expect(await call<ApprovalView>(world.system, 'GET', `/v1/approvals/${approval?.id}`)).toMatchObject({ state: 'pending' })
  expect(tools.tools.get('mail.send')?.happened).toEqual([])
  await call(world.system, 'POST', path, yes)
  await follow(world.system, runId)
  expect(tools.tools.get('mail.send')?.happened).toHaveLength(1)
})

it.each([
  ['POST', `/v1/effects/${nobody}/reconcile`, { as: 'done', constraints: {} }, 'constraints'],
  ['PUT', '/v1/grant', { ...set, constraints: {} }, 'constraints'],
  [
    'PUT',
    '/v1/grant',
    { ...set, class_rules: [{ capability: 'read_only', verdict: 'ask', constraints: {} }] },
    'class_rules[0].constraints',
  ],
  ['POST', `/v1/tasks/${nobody}/commit`, { candidate_id: nobody, constraints: {} }, 'constraints'],
  [
    'POST',
    `/v1/tasks/${nobody}/complete`,
    { artifacts: [{ media_type: 'text/plain', text: 'x', constraints: {} }] },
    'artifacts[0].constraints',
  ],
  ['POST', `/v1/admin/bundles/${digest}/evaluations`, { accepted: true, constraints: {} }, 'constraints'],
  ['POST', `/v1/admin/bundles/${digest}/activation`, { from: digest, reason: 'promote', constraints: {} }, 'constraints'],
  ['POST', `/v1/tool-sources/${nobody}/accept`, { tools: [], constraints: {} }, 'constraints'],
])('%s %s says at which field', async (method, path, body, field) => {
  const before = await call<GrantView>(world.system, 'GET', '/v1/grant')
  const answered = await world.system.call(method, path, { body })
  expect(answered.status, answered.text).toBe(400)
  expect(answered.headers.get('content-type')).toContain('application/problem+json')
  expect((answered.json() as Problem).errors?.map((error) => error.path)).toEqual([field])
  expect(await call<GrantView>(world.system, 'GET', '/v1/grant')).toEqual(before)
})
