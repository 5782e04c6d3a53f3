import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Problem } from '#contracts'
import { ApiReader } from '#test/support/api-document'
import type { DocumentedCall } from '#test/support/api-document'
import { startTestSystem } from '#test/support/system'
import type { CallAnswer, CallOptions, TestSystem } from '#test/support/system'

// Each of these walks the whole API.
vi.setConfig({ testTimeout: 120_000 })

let lingtai: TestSystem
let api: ApiReader
beforeAll(async () => {
  lingtai = await startTestSystem()
  api = await ApiReader.of(lingtai)
})
afterAll(() => lingtai.close())

/** A refusal as every one must be: 4xx, problem+json, with a place. */
function expectRefused(answer: CallAnswer, statuses: readonly number[], what: string): void {
  expect(statuses, `${what}: ${answer.status} ${answer.text.slice(0, 300)}`).toContain(answer.status)
  expect(answer.headers.get('content-type'), what).toMatch(/^application\/problem\+json/)
  const problem = Problem.parse(answer.json())
  expect(problem.errors?.[0]?.path, `${what}: ${answer.text}`).toBeTruthy()
}

const send = (call: DocumentedCall, options: CallOptions & { path?: string } = {}): Promise<CallAnswer> =>
  lingtai.call(call.method, options.path ?? api.fill(call) + api.requiredQuery(call), options)

/** Sends one to every route at a time, so that a refusal of one route names it. */
async function forEach(calls: readonly DocumentedCall[], check: (call: DocumentedCall, name: string) => Promise<void>): Promise<void> {
  expect(calls.length).toBeGreaterThan(0)
  for (const call of calls) await check(call, `${call.method} ${call.path}`)
}

const hostileIds = [
  'x',
  '0',
  'null',
  '..%2f..%2fetc',
  '%00',
  '%F0%9F%98%80',
  '01a22968-84d7-71a4-bf1f-6eeb557de50',
  "1'%20or%201=1",
  'a'.repeat(3000),
]

describe('bad input, generated from the document', () => {
  it('documents every route', () => {
    expect(api.calls.length).toBeGreaterThan(30)
  })

  it('refuses malformed ids with the parameter’s name', async () => {
    await forEach(
      api.calls.filter((call) => Object.keys(call.pathParameters).length > 0),
      async (call, name) => {
        for (const parameter of Object.keys(call.pathParameters)) {
          const sent = async (id: string): Promise<void> => {
            const path = call.path.replaceAll(/\{(\w+)\}/g, (_, other: string) =>
              other === parameter ? id : encodeURIComponent(String(api.sample(call.pathParameters[other] ?? {}))),
            )
            const answer = await send(call, { path: path + api.requiredQuery(call), body: api.sampleBody(call) })
            expectRefused(answer, [400], `${name} with ${parameter}=${id.slice(0, 40)}`)
            expect(Problem.parse(answer.json()).errors?.[0]?.path).toBe(`params.${parameter}`)
          }
          await Promise.all(hostileIds.map(sent))
        }
      },
    )
  })

  it('refuses a path that cannot be decoded', async () => {
    for (const path of ['/v1/characters/%E0%A4%A', '/v1/characters/%', '/v1/trees/%C3%28']) {
      expectRefused(await lingtai.call('GET', path), [400], path)
    }
  })

  it('refuses faulty query parameters with their name', async () => {
    await forEach(
      api.calls.filter((call) => Object.keys(call.queryParameters).length > 0),
      async (call, name) => {
        for (const [parameter, { schema }] of Object.entries(call.queryParameters)) {
          const {
            type,
            format,
            minimum = 0,
            enum: options,
          } = api.at(schema) as { type?: string; format?: string; minimum?: number; enum?: unknown[] }
          const isClosed = type === 'integer' || type === 'number' || format === 'uuid' || options !== undefined
          const faulty = [
            '',
            '%00',
            `a&${parameter}=b`,
            ...(isClosed ? ['x', String(minimum - 1), '1.5', '1e99', '99999999999999999999'] : []),
          ]
          await Promise.all(
            faulty.map(async (value) => {
              const answer = await send(call, { path: `${api.fill(call)}?${parameter}=${value}`, body: api.sampleBody(call) })
              expectRefused(answer, [400], `${name}?${parameter}=${value}`)
            }),
          )
        }
      },
    )
  })

  it('refuses JSON bodies of the wrong shape, field by field', async () => {
    await forEach(
      api.calls.filter((call) => call.jsonBody !== null),
      async (call, name) => {
        const schema = api.at(call.jsonBody ?? {}) as { properties?: Record<string, Record<string, unknown>>; required?: string[] }
        for (const body of ['[]', 'null', '"text"', '17', 'true']) expectRefused(await send(call, { body }), [400], `${name} ${body}`)
        const fitting = api.sampleBody(call) as Record<string, unknown>
        for (const required of schema.required ?? []) {
          const { [required]: _, ...body } = fitting
          const answer = await send(call, { body })
          expectRefused(answer, [400], `${name} without ${required}`)
          expect(Problem.parse(answer.json()).errors?.map((error) => error.path)).toContain(required)
        }
        for (const [property, { type, anyOf }] of Object.entries(schema.properties ?? {})) {
          const mayBeNull = Array.isArray(anyOf) && anyOf.some((option) => (option as { type?: string }).type === 'null')
          for (const value of [type === 'object' ? 17 : {}, [{}], ...(mayBeNull ? [] : [null]), type === 'string' ? 17 : 'x', 'nul\0']) {
            expectRefused(
              await send(call, { body: { ...fitting, [property]: value } }),
              [400],
              `${name} ${property}=${JSON.stringify(value)}`,
            )
          }
        }
      },
    )
  })

  it('refuses JSON bodies that are hostile in themselves', async () => {
    const hostile: [string, string | Uint8Array, number[]][] = [
      ['cut', '{"a":', [400]],
      ['empty text', ' ', [400]],
      ['not UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), [400]],
      ['deep', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, [400]],
      ['deep objects', `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`, [400]],
      ['NUL', '{"a":"\\u0000"}', [400]],
      ['prototype', '{"__proto__":{"admin":true}}', [400]],
      ['huge', `{"a":"${'x'.repeat(5 * 1024 * 1024)}"}`, [413]],
    ]
    await forEach(
      api.calls.filter((call) => call.jsonBody !== null),
      async (call, name) => {
        for (const [what, body, statuses] of hostile) expectRefused(await send(call, { body }), statuses, `${name} ${what}`)
        for (const type of [
          'text/plain',
          'application/x-www-form-urlencoded',
          'multipart/form-data; boundary=x',
          'application/json; charset=utf-16',
        ]) {
          expectRefused(await send(call, { body: '{}', headers: { 'content-type': type } }), [415], `${name} as ${type}`)
        }
        expectRefused(await send(call, { body: '{}', headers: { 'content-encoding': 'gzip' } }), [415], `${name} packed`)
      },
    )
  })

  it('refuses files that are none', async () => {
    const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
    const files: [string, string | Uint8Array][] = [
      ['nothing', ''],
      ['noise', Uint8Array.from({ length: 1000 }, (_, index) => (index * 89) % 251)],
      ['a bare PNG signature', png],
      ['a cut PNG', Uint8Array.of(...png, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52)],
      ['JSON that is no card', '[1,2,3]'],
      ['deep JSON', `{"name":"x","a":${'['.repeat(5000)}${']'.repeat(5000)}}`],
      ['NUL', '{"name":"a\\u0000b","entries":{"0":{"content":"\\u0000"}}}'],
      ['not UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ]
    await forEach(
      api.calls.filter((call) => call.bodyTypes.length > 1),
      async (call, name) => {
        for (const [what, body] of files) {
          expectRefused(await send(call, { body, headers: { 'content-type': 'application/octet-stream' } }), [422], `${name} ${what}`)
        }
        expectRefused(await send(call, { body: 'x', headers: { 'content-type': 'text/html' } }), [415], `${name} as text/html`)
        expectRefused(
          await send(call, { body: new Uint8Array(16 * 1024 * 1024 + 1), headers: { 'content-type': 'application/octet-stream' } }),
          [413],
          `${name} huge`,
        )
      },
    )
  })

  it('refuses malformed idempotency keys', async () => {
    const call = api.calls.find(({ path, method }) => path === '/v1/realms' && method === 'POST')
    if (!call) throw new Error('the document lacks POST /v1/realms')
    for (const key of ['', ' ', 'two words', 'x'.repeat(256), 'é']) {
      expectRefused(
        await send(call, { body: { kind: 'fiction', name: 'x' }, headers: { 'idempotency-key': key } }),
        [400],
        `key ${JSON.stringify(key.slice(0, 20))}`,
      )
    }
  })

  it('answers no input at all with 500', async () => {
    for (const call of api.calls.filter(({ jsonBody }) => jsonBody !== null)) {
      const fitting = api.sampleBody(call) as Record<string, unknown>
      await fc.assert(
        fc.asyncProperty(
          fc.jsonValue({ noUnicodeString: false, maxDepth: 4 }),
          fc.string({ unit: 'binary', maxLength: 50 }),
          async (value, text) => {
            const names = Object.keys(fitting)
            const body = JSON.stringify({
              ...fitting,
              ...(typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}),
              [names[0] ?? 'a']: text,
            })
            const answer = await send(call, { body })
            expect(answer.status, `${call.method} ${call.path} ${body}: ${answer.text.slice(0, 200)}`).toBeLessThan(500)
          },
        ),
        { numRuns: 8, seed: 7 },
      )
    }
  })

  it('leaves nothing half-written: what was refused is not there', async () => {
    const realms = (await lingtai.call('GET', '/v1/realms')).json() as { items: { name: string }[] }
    expect(realms.items.map((realm) => realm.name)).not.toContain('nul\0')
    expect((await lingtai.call('POST', '/v1/admin/verify')).json()).toMatchObject({ intact: true })
  })
})
