import { createPublicKey, verify } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { EvidencePackage, TaskView } from '#contracts'
import { canonicalJson } from '#kernel/record/canonical-json'
import { call, newTree } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

/* The evidence of a task, as whoever gets the answer can check it alone. */

let system: TestSystem
beforeAll(async () => {
  system = await startTestSystem()
})
afterAll(() => system.close())

function isSigned({ public_key: key, signature, ...rest }: EvidencePackage): boolean {
  const x = Buffer.from(key, 'base64').toString('base64url')
  const own = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return verify(null, Buffer.from(canonicalJson(rest), 'utf8'), own, Buffer.from(signature, 'base64'))
}

it('the evidence of a task is signed by the instance, word for word', async () => {
  const tree = await newTree(system)
  const task = await call<TaskView>(system, 'POST', '/v1/tasks', {
    character_id: tree.character_ids[0],
    instruction: 'Find the door.',
    inputs: [{ media_type: 'text/plain', text: 'A map.' }],
    acceptance: { contract_version: 1, checks: [{ id: 'shape', kind: 'schema', schema: { type: 'object' } }] },
    budget: {},
  })
  const path = `/v1/tasks/${task.task_id}`
  await call(system, 'POST', `${path}/attempts`, {})
  const { artifacts } = await call<{ artifacts: { candidate_id: string }[] }>(system, 'POST', `${path}/complete`, {
    artifacts: [{ media_type: 'application/json', text: '{}' }],
  })
  await call(system, 'POST', `${path}/commit`, { candidate_id: artifacts[0]?.candidate_id })
  const shown = await call<EvidencePackage>(system, 'GET', `${path}/evidence`)
  expect(isSigned(shown)).toBe(true)
  expect(isSigned({ ...shown, task: { ...shown.task, status: 'open' } })).toBe(false)
  expect(isSigned({ ...shown, inputs: shown.inputs.map((input) => ({ ...input, text: 'Another map.' })) })).toBe(false)

  // What the owner committed to says so itself, without the texts.
  const stored = await system.system.tasks.store.evidence(task.task_id)
  const content = (await system.system.contents.get([stored?.content_id ?? ''])).get(stored?.content_id ?? '')
  const committed = JSON.parse(Buffer.from(content?.bytes ?? []).toString('utf8')) as EvidencePackage
  expect(isSigned(committed)).toBe(true)
  expect(committed).toMatchObject({ public_key: shown.public_key, inputs: [{ text: null }, { text: null }] })
})
