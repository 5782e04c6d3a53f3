import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Problem } from '#contracts'
import { ApiReader } from '#test/support/api-document'
import type { DocumentedCall } from '#test/support/api-document'
import { ownedThings } from '#test/support/owned-things'
import { startTestSystem } from '#test/support/system'
import type { TestSystem } from '#test/support/system'

// Each of these walks the whole API.
vi.setConfig({ testTimeout: 120_000 })

let lingtai: TestSystem
let api: ApiReader
let owned: Record<string, string>
beforeAll(async () => {
  lingtai = await startTestSystem()
  api = await ApiReader.of(lingtai)
  owned = await ownedThings(lingtai)
})
afterAll(() => lingtai.close())

/** `/v1/characters/{id}/accept` is about `characters`. */
const collectionOf = (call: DocumentedCall): string => call.path.split('/')[2] ?? ''
const callsWithIds = (): DocumentedCall[] =>
  api.calls.filter((call) => call.scope !== null && call.scope !== 'admin' && call.path.includes('{'))

function ownedId(call: DocumentedCall): string {
  const id = owned[collectionOf(call)]
  if (id === undefined) throw new Error(`${call.path}: add one of ${collectionOf(call)} to test/support/owned-things.ts`)
  return id
}

describe('isolation, generated from the document', () => {
  it('shows the first owner what is theirs', async () => {
    const readable = callsWithIds().filter((call) => call.method === 'GET' && call.path.endsWith('}'))
    expect(readable.length).toBeGreaterThan(3)
    for (const call of readable) {
      const answer = await lingtai.call('GET', api.fill(call, { id: ownedId(call) }) + api.requiredQuery(call))
      expect(answer.status, `${call.path}: ${answer.text}`).toBe(200)
    }
  })

  it('answers another owner on every route as if the id did not exist', async () => {
    const calls = callsWithIds()
    expect(calls.length).toBeGreaterThan(20)
    for (const call of calls) {
      const name = `${call.method} ${call.path}`
      const options = { token: lingtai.ownerBToken, body: api.sampleBody(call) }
      const foreign = await lingtai.call(call.method, api.fill(call, { id: ownedId(call) }) + api.requiredQuery(call), options)
      const unknown = await lingtai.call(call.method, api.fill(call) + api.requiredQuery(call), options)
      expect(foreign.status, `${name}: ${foreign.text}`).toBe(404)
      const { trace_id: _, ...told } = foreign.json() as Problem
      const { trace_id: __, ...toldOfNothing } = unknown.json() as Problem
      expect(told, name).toEqual(toldOfNothing)
    }
  })

  it('answers another owner the same where the id stands in a body or a query', async () => {
    const { ownerBToken: token } = lingtai
    const attempts: [string, string, unknown?][] = [
      ['POST', '/v1/trees', { character_id: owned['characters'] }],
      ['POST', `/v1/lorebooks/import?character_id=${owned['characters']}`, { entries: {} }],
      [
        'POST',
        '/v1/characters',
        { name: 'x', realm_id: ((await lingtai.call('GET', '/v1/realms')).json() as { items: { id: string }[] }).items[0]?.id },
      ],
    ]
    for (const [method, path, body] of attempts) {
      const answer = await lingtai.call(method, path, { token, body })
      expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(404)
      expect((answer.json() as Problem).errors?.[0]?.path, path).toMatch(/character_id|realm_id/)
    }
  })

  it('lists nothing of the first owner to another', async () => {
    const lists = api.calls.filter((call) => call.method === 'GET' && call.scope === 'read' && !call.path.includes('{'))
    expect(lists.length).toBeGreaterThan(5)
    const ids = Object.values(owned)
    for (const call of lists) {
      const answer = await lingtai.call('GET', api.fill(call) + api.requiredQuery(call), { token: lingtai.ownerBToken })
      expect(answer.status, call.path).toBe(200)
      for (const id of ids) expect(answer.text, call.path).not.toContain(id)
    }
  })

  it('left everything of the first owner as it was', async () => {
    for (const call of callsWithIds().filter(({ method, path }) => method === 'GET' && path.endsWith('}'))) {
      expect((await lingtai.call('GET', api.fill(call, { id: ownedId(call) }))).status, call.path).toBe(200)
    }
    const { items } = (await lingtai.call('GET', '/v1/tokens')).json() as { items: { id: string; revoked_at: string | null }[] }
    expect(items.find((token) => token.id === owned['tokens'])?.revoked_at).toBeNull()
  })
})

describe('who may what, generated from the document', () => {
  it('asks everybody to sign in first', async () => {
    for (const call of api.calls.filter(({ scope }) => scope !== null)) {
      for (const token of [null, 'lt_unknown', 'x'.repeat(600)]) {
        const answer = await lingtai.call(call.method, api.fill(call) + api.requiredQuery(call), { token, body: api.sampleBody(call) })
        expect(answer.status, `${call.method} ${call.path}`).toBe(401)
        expect((answer.json() as Problem).code).toBe('not_signed_in')
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
      }
    }
  })

  it('keeps a token to its scopes, and admin calls to admins', async () => {
    const scopes = ['read', 'write', 'approve', 'admin'] as const
    const tokens = new Map(await Promise.all(scopes.map(async (scope) => [scope, await lingtai.tokenWith([scope])] as const)))
    const userAdmin = await lingtai.tokenWith(['admin'], lingtai.ownerBId)
    for (const call of api.calls.filter(({ scope }) => scope !== null)) {
      const send = (token: string | undefined) =>
        lingtai.call(call.method, api.fill(call) + api.requiredQuery(call), { token, body: api.sampleBody(call) })
      for (const scope of scopes.filter((other) => other !== call.scope)) {
        const answer = await send(tokens.get(scope))
        expect(answer.status, `${call.method} ${call.path} with ${scope}`).toBe(403)
        expect((answer.json() as Problem).code).toBe('forbidden_scope')
      }
      if (call.scope === 'admin') expect((await send(userAdmin)).status, `${call.method} ${call.path}`).toBe(403)
    }
  })

  it('forgets a token the moment it is revoked', async () => {
    const { id, token } = (await lingtai.call('POST', '/v1/tokens', { body: { name: 'short-lived' } })).json() as {
      id: string
      token: string
    }
    expect((await lingtai.call('GET', '/v1/characters', { token })).status).toBe(200)
    expect((await lingtai.call('DELETE', `/v1/tokens/${id}`)).status).toBe(204)
    expect((await lingtai.call('GET', '/v1/characters', { token })).status).toBe(401)
  })

  it('lets no token hand out more than it holds', async () => {
    const token = await lingtai.tokenWith(['read', 'write'])
    for (const scope of ['approve', 'admin']) {
      const answer = await lingtai.call('POST', '/v1/tokens', { token, body: { name: 'x', scopes: ['read', scope] } })
      expect(answer.status).toBe(403)
      expect((answer.json() as Problem).errors?.[0]?.path).toBe('scopes[1]')
    }
  })
})
