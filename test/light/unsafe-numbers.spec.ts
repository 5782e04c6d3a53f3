/** Numbers that JSON does not carry safely, wherever JSON of somebody's is taken in (decision 8). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Problem, TaskView, ToolSourceView } from '#contracts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import type { CallAnswer } from '../support/system.ts'
import { treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const tools = fakeTools(fakeContract('put.down', { parameters: { type: 'object' } }))
let world: World
beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue } })
})
afterAll(() => world.close())

/** Sent as it stands, since no serializer here would write such numbers. */
function post(path: string, body: object): Promise<CallAnswer> {
  const text = JSON.stringify(body).replaceAll('"MOST"', '9223372036854775807').replaceAll('"LONG"', '12345678901234567890')
  return world.system.call('POST', path, { body: text })
}

const refusedAt = async (path: string, body: object): Promise<string[]> => {
  const answer = await post(path, body)
  const problem = Problem.parse(answer.json())
  expect({ status: answer.status, code: problem.code }).toEqual({ status: 400, code: 'validation_failed' })
  return (problem.errors ?? []).map((error) => error.path)
}

describe('the declaration of a tool', () => {
  const openapi = (schema: object) => ({
    name: `api-${Math.random().toString(36).slice(2)}`,
    openapi: {
      document: {
        openapi: '3.0.0',
        servers: [{ url: 'https://api.example.com' }],
        paths: { '/things': { get: { operationId: 'things', parameters: [{ name: 'after', in: 'query', schema }] } } },
      },
      operations: ['things'],
    },
  })
  const http = (schema: object) => ({
    name: `http-${Math.random().toString(36).slice(2)}`,
    http: {
      tools: [
        {
          name: 't',
          description: 'd',
          method: 'GET',
          url: 'https://api.example.com/x',
          parameters: { type: 'object', properties: { a: schema } },
        },
      ],
    },
  })

  it('keeps an operation whose bounds are those of 64-bit integers', async () => {
    const answer = await post('/v1/tool-sources', openapi({ type: 'integer', format: 'int64', maximum: 'MOST' }))
    expect(answer.status).toBe(201)
    const source = ToolSourceView.parse(answer.json())
    expect({ tools: source.tools.length, refused: source.refused }).toEqual({ tools: 1, refused: [] })
    expect((await post('/v1/tool-sources', http({ type: 'integer', maximum: 'MOST' }))).status).toBe(201)
  })

  it('refuses by name what cannot be written down', async () => {
    expect(await refusedAt('/v1/tool-sources', openapi({ enum: ['LONG'] }))).toEqual(['openapi.operations[0]'])
    expect(await refusedAt('/v1/tool-sources', http({ const: 'LONG' }))).toEqual(['http.tools[0].parameters'])
  })
})

describe('delegated work', () => {
  it('says where arguments hold a number that would not arrive', async () => {
    const tree = await treeWithTools(world.system, ['put.down'])
    const body = { character_id: tree.character_ids[0], instruction: 'Put it down.', tools: ['put.down'], budget: {} }
    const check = { id: 'a', kind: 'tool', tool: 'put.down', arguments: { list: [1, 'LONG'] }, expect: {} }
    expect(await refusedAt('/v1/tasks', { ...body, acceptance: { contract_version: 1, checks: [check] } })).toEqual([
      'acceptance.checks[0].arguments.list[1]',
    ])
    const task = TaskView.parse((await post('/v1/tasks', body)).json())
    await post(`/v1/tasks/${task.task_id}/attempts`, {})
    const action = { key: 'k', tool: 'put.down' }
    const actions = `/v1/tasks/${task.task_id}/actions`
    expect(await refusedAt(actions, { ...action, arguments: { n: 'LONG' } })).toEqual(['arguments.n'])
    expect(tools.tools.get('put.down')?.happened).toEqual([])
    expect((await post(actions, { ...action, arguments: { n: '12345678901234567890', most: 9_007_199_254_740_991 } })).status).toBe(200)
    expect(tools.tools.get('put.down')?.happened.map(({ argumentsText }) => argumentsText)).toEqual([
      '{"most":9007199254740991,"n":"12345678901234567890"}',
    ])
  })
})
