/** What a task may be measured by: nothing that could not be held, refused before anything is written (`003…` §2). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CompletionView, Problem, TaskView } from '#contracts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { call, newTree } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

const tools = fakeTools(fakeContract('look.up'), fakeContract('pay', { capability: 'irreversible_external', priceMicros: 1 }))
let system: TestSystem
let characterId: string

beforeAll(async () => {
  system = await startTestSystem({ overrides: { tools: tools.catalogue } })
  const tree = await newTree(system)
  characterId = tree.character_ids[0] ?? ''
})
afterAll(() => system.close())

const accepting = (...checks: readonly unknown[]) => ({ acceptance: { contract_version: 1, checks } })
const shape = (schema: unknown) => accepting({ id: 'shape', kind: 'schema', schema })
const looks = (changes: Record<string, unknown>) =>
  accepting({ id: 'seen', kind: 'tool', tool: 'look.up', arguments: { text: 'door' }, expect: { type: 'string' }, ...changes })
const wanted = (changes: Record<string, unknown>) => ({
  character_id: characterId,
  instruction: 'Find the door.',
  tools: ['look.up'],
  budget: {},
  ...changes,
})

async function written(): Promise<string> {
  const counted = ['tasks', 'contents', 'events', 'outbox'].map((table) => `(SELECT count(*) FROM ${table})`)
  const [row] = await system.system.database.query<{ all: string }>(`SELECT concat_ws(' ', ${counted.join(', ')}) AS all`, [])
  return row?.all ?? ''
}

function nested(levels: number): unknown {
  let schema: unknown = { type: 'string' }
  for (let level = 0; level < levels; level++) schema = { not: schema }
  return schema
}

describe('a task is refused', () => {
  const at = 'acceptance.checks[0]'
  it.each<[string, () => Record<string, unknown>, string]>([
    ['a type that there is not', () => shape({ type: 'bogus' }), `${at}.schema.type`],
    [
      'such a type deep inside',
      () => shape({ properties: { a: { items: [{ type: ['x'] }] } } }),
      `${at}.schema.properties.a.items[0].type`,
    ],
    ['a reference that leads nowhere', () => shape({ $ref: '#/$defs/none' }), `${at}.schema.$ref`],
    ['a reference elsewhere', () => shape({ items: { $ref: 'https://example.com/schema.json' } }), `${at}.schema.items.$ref`],
    ['a reference to itself', () => shape({ anyOf: [{ $ref: '#' }] }), `${at}.schema.anyOf[0].$ref`],
    ['a schema that is nested too deep', () => shape(nested(55)), `${at}.schema${'.not'.repeat(8)}`],
    ['a body that is nested too deep', () => shape(nested(1_000)), `${at}.schema${'.not'.repeat(4)}`],
    ['a schema that is too large', () => shape({ enum: Array.from({ length: 9_000 }, (_, index) => index) }), `${at}.schema`],
    ['a keyword that nobody knows', () => shape({ if: {} }), `${at}.schema.if`],
    ['a keyword that nobody checks', () => shape({ format: 'email' }), `${at}.schema.format`],
    ['a pattern that is none', () => shape({ pattern: '(' }), `${at}.schema.pattern`],
    ['a pattern that may run for ever', () => shape({ properties: { a: { pattern: '^(a+)+$' } } }), `${at}.schema.properties.a.pattern`],
    ['alternatives that may run for ever', () => shape({ pattern: '(a|aa)+$' }), `${at}.schema.pattern`],
    ['a schema of what a tool sees', () => looks({ expect: { type: 'text' } }), `${at}.expect.type`],
    ['arguments that the tool does not take', () => looks({ arguments: { text: 1 } }), `${at}.arguments.text`],
    ['a check by a tool that nobody has', () => looks({ tool: 'nothing' }), `${at}.tool`],
    ['a check by a tool that does more than look', () => looks({ tool: 'pay' }), `${at}.tool`],
    ['a committed tool that nobody has', () => accepting({ id: 'a', kind: 'committed', tool: 'nothing', at_least: 1 }), `${at}.tool`],
    ['tools that nobody has', () => ({ tools: ['look.up', 'nothing'] }), 'tools[1]'],
  ])('for %s, with its place, and nothing is written', async (_, changes, path) => {
    const before = await written()
    const answer = await system.call('POST', '/v1/tasks', { body: wanted(changes()), headers: { 'Idempotency-Key': crypto.randomUUID() } })
    expect(answer.status, answer.text).toBe(400)
    expect(answer.headers.get('content-type')).toContain('application/problem+json')
    const { code, errors } = answer.json() as Problem
    expect(code).toBe('validation_failed')
    expect(errors?.map((error) => error.path)).toEqual([path])
    expect(await written()).toBe(before)
  })
})

describe('a task is held to', () => {
  it('the patterns of its schema, however long the text is', async () => {
    const schema = { type: 'object', required: ['name'], properties: { name: { type: 'string', pattern: '^[a-z]+(-[a-z]+)*$' } } }
    const measured = async (name: string): Promise<CompletionView> => {
      const task = await call<TaskView>(system, 'POST', '/v1/tasks', wanted(shape(schema)))
      await call(system, 'POST', `/v1/tasks/${task.task_id}/attempts`, {})
      const artifacts = [{ media_type: 'application/json', text: JSON.stringify({ name }) }]
      return call<CompletionView>(system, 'POST', `/v1/tasks/${task.task_id}/complete`, { artifacts })
    }
    expect((await measured('third-door')).verdict).toBe('verified')
    for (const name of ['Third', 'third-', `${'a-'.repeat(200_000)}!`])
      expect((await measured(name)).verification?.checks).toMatchObject([{ status: 'failed', code: 'does_not_fit' }])
  })
})
