import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CharacterView, CreatedToken, Problem } from '#contracts'
import { MovedClock } from '#test/support/moved-clock'
import { startTestSystem } from '#test/support/system'
import type { CallAnswer, CallOptions, TestSystem } from '#test/support/system'

const DAY_MS = 24 * 3_600_000

const clock = new MovedClock()
let lingtai: TestSystem
beforeAll(async () => {
  lingtai = await startTestSystem({ overrides: { clock } })
})
afterAll(() => lingtai.close())

const keyed = (method: string, path: string, key: string, options: CallOptions = {}): Promise<CallAnswer> =>
  lingtai.call(method, path, { ...options, headers: { ...options.headers, 'idempotency-key': key } })
const realmNames = async (token?: string): Promise<string[]> => {
  const answer = await lingtai.call('GET', '/v1/realms', token === undefined ? {} : { token })
  return (answer.json() as { items: { name: string }[] }).items.map((realm) => realm.name)
}
const count = (names: readonly string[], name: string): number => names.filter((other) => other === name).length

describe('the same key with the same request', () => {
  it('acts once and answers the same', async () => {
    const key = randomUUID()
    const body = { kind: 'fiction', name: 'Harbour' }
    const first = await keyed('POST', '/v1/realms', key, { body })
    const second = await keyed('POST', '/v1/realms', key, { body })
    expect(first.status).toBe(201)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    expect(second.status).toBe(201)
    expect(second.json()).toEqual(first.json())
    expect(second.headers.get('idempotency-replayed')).toBe('true')
    expect(count(await realmNames(), 'Harbour')).toBe(1)
  })

  it('acts once for twins that come at the same time', async () => {
    const key = randomUUID()
    const body = { kind: 'fiction', name: 'Twins' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => keyed('POST', '/v1/realms', key, { body })))
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([201]))
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1)
    expect(answers.filter((answer) => answer.headers.get('idempotency-replayed') === null)).toHaveLength(1)
    expect(count(await realmNames(), 'Twins')).toBe(1)
  })

  it('shows a token once', async () => {
    const key = randomUUID()
    const body = { name: 'once' }
    const answers = await Promise.all([keyed('POST', '/v1/tokens', key, { body }), keyed('POST', '/v1/tokens', key, { body })])
    const tokens = answers.map((answer) => answer.json() as CreatedToken)
    expect(new Set(tokens.map((token) => token.id)).size).toBe(1)
    expect(tokens.filter((token) => token.token !== null)).toHaveLength(1)
    expect((await keyed('POST', '/v1/tokens', key, { body })).json()).toMatchObject({ token: null, name: 'once' })
  })

  it('shows the sign-in link of a new owner once', async () => {
    const key = randomUUID()
    const body = { name: `owner ${key}` }
    const first = (await keyed('POST', '/v1/owners', key, { body })).json() as { owner: unknown; signin_link: string | null }
    expect(first.signin_link).toMatch(/#signin=/)
    expect((await keyed('POST', '/v1/owners', key, { body })).json()).toEqual({ owner: first.owner, signin_link: null })
  })

  it('answers an import again with its report', async () => {
    const key = randomUUID()
    const card = JSON.stringify({ spec: 'chara_card_v9', spec_version: '9', data: { name: 'Odd', tags: ['a', 7] } })
    const first = await keyed('POST', '/v1/characters/import', key, { body: card })
    const second = await keyed('POST', '/v1/characters/import', key, { body: card })
    expect((first.json() as { report: unknown[] }).report.length).toBeGreaterThan(0)
    expect(second.json()).toEqual(first.json())
    const book = '{"entries":{"0":{"key":["  "],"content":"x"}}}'
    const bookKey = randomUUID()
    const imported = await keyed('POST', '/v1/lorebooks/import', bookKey, { body: book })
    expect((imported.json() as { report: unknown[] }).report.length).toBeGreaterThan(0)
    expect((await keyed('POST', '/v1/lorebooks/import', bookKey, { body: book })).json()).toEqual(imported.json())
  })

  it('answers nothing again where there was nothing to say', async () => {
    const character = (await lingtai.call('POST', '/v1/characters', { body: { name: 'Gone' } })).json() as CharacterView
    const key = randomUUID()
    const statuses = [
      await keyed('DELETE', `/v1/characters/${character.id}`, key),
      await keyed('DELETE', `/v1/characters/${character.id}`, key),
    ]
    expect(statuses.map((answer) => answer.status)).toEqual([204, 204])
    expect((await keyed('DELETE', `/v1/characters/${character.id}`, randomUUID())).status).toBe(404)
  })
})

describe('the same key with another request', () => {
  it('is refused, whatever differs', async () => {
    const key = randomUUID()
    const [one, two] = await Promise.all(
      ['One', 'Two'].map(async (name) => (await lingtai.call('POST', '/v1/characters', { body: { name } })).json() as CharacterView),
    )
    const body = { description: 'changed' }
    expect((await keyed('POST', `/v1/characters/${one?.id}/versions`, key, { body })).status).toBe(201)
    const others = await Promise.all([
      keyed('POST', `/v1/characters/${one?.id}/versions`, key, { body: { description: 'otherwise' } }),
      keyed('POST', `/v1/characters/${two?.id}/versions`, key, { body }),
      keyed('POST', `/v1/characters/${one?.id}/versions?x=1`, key, { body }),
    ])
    for (const answer of others) {
      expect(answer.status).toBe(422)
      expect(answer.json() as Problem).toMatchObject({ code: 'idempotency_mismatch', errors: [{ path: 'headers.idempotency-key' }] })
    }
    expect(((await lingtai.call('GET', `/v1/characters/${one?.id}`)).json() as CharacterView).version).toBe(2)
    expect(((await lingtai.call('GET', `/v1/characters/${two?.id}`)).json() as CharacterView).version).toBe(1)
  })
})

describe('a key', () => {
  it('is another on another route, and for another owner', async () => {
    const key = randomUUID()
    const body = { name: 'Shared' }
    expect((await keyed('POST', '/v1/characters', key, { body })).status).toBe(201)
    expect((await keyed('POST', '/v1/personas', key, { body })).status).toBe(201)
    const realm = { kind: 'fiction', name: 'Shared' }
    expect((await keyed('POST', '/v1/realms', key, { body: realm })).status).toBe(201)
    expect(
      (await keyed('POST', '/v1/realms', key, { body: realm, token: lingtai.ownerBToken })).headers.get('idempotency-replayed'),
    ).toBeNull()
    expect(count(await realmNames(lingtai.ownerBToken), 'Shared')).toBe(1)
  })

  it('is free again after a refusal, which wrote nothing', async () => {
    const key = randomUUID()
    const unknown = randomUUID()
    const body = { name: 'Tried twice', realm_id: unknown }
    expect((await keyed('POST', '/v1/characters', key, { body })).status).toBe(404)
    expect((await keyed('POST', '/v1/characters', key, { body: { name: 'Tried twice' } })).status).toBe(201)
  })

  it('means nothing where nothing is written by it, and is not asked of reading', async () => {
    const key = randomUUID()
    expect((await keyed('GET', '/v1/realms', key)).status).toBe(200)
    expect((await keyed('POST', '/v1/admin/verify', key)).status).toBe(200)
    expect((await keyed('POST', '/v1/admin/verify', key)).headers.get('idempotency-replayed')).toBeNull()
  })

  it('is forgotten after a day', async () => {
    const key = randomUUID()
    const body = { kind: 'fiction', name: 'Yesterday' }
    await keyed('POST', '/v1/realms', key, { body })
    clock.ahead = DAY_MS - 60_000
    expect((await keyed('POST', '/v1/realms', key, { body })).headers.get('idempotency-replayed')).toBe('true')
    clock.ahead = DAY_MS + 60_000
    const later = await keyed('POST', '/v1/realms', key, { body: { kind: 'fiction', name: 'Today' } })
    expect(later.status).toBe(201)
    expect(later.headers.get('idempotency-replayed')).toBeNull()
    clock.ahead = 3 * DAY_MS
    await lingtai.system.idempotency.tidy()
    const rows = await lingtai.system.database.query<{ count: number }>('SELECT count(*)::int AS count FROM idempotency_keys')
    expect(rows[0]?.count).toBe(0)
    clock.ahead = 0
  })

  it('leaves ids and digests behind, no text', async () => {
    await keyed('POST', '/v1/personas', randomUUID(), { body: { name: 'Mara the unmistakable', description: 'secret words' } })
    const rows = await lingtai.system.database.query<{ row: string }>('SELECT to_jsonb(k)::text AS row FROM idempotency_keys k')
    expect(rows.length).toBeGreaterThan(0)
    for (const { row } of rows) expect(row).not.toMatch(/unmistakable|secret words/)
  })
})
