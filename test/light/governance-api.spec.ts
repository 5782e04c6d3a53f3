import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AuditEvent, KillFlag, LorebookView, Problem, RealmView, UserPersonaView } from '#contracts'
import { startTestSystem } from '#test/support/system'
import type { TestSystem } from '#test/support/system'

const GLOBAL = '00000000-0000-0000-0000-000000000000'
let lingtai: TestSystem
beforeAll(async () => {
  lingtai = await startTestSystem()
})
afterAll(() => lingtai.close())

const items = async <Item>(path: string, token?: string): Promise<Item[]> => {
  const answer = await lingtai.call('GET', path, token === undefined ? {} : { token })
  return (answer.json() as { items: Item[] }).items
}

describe('the kill switch', () => {
  it('is set and lifted in each scope, and written down by whom', async () => {
    const targets = [`global/${GLOBAL}`, `owner/${lingtai.ownerBId}`, `character/${(await items<{ id: string }>('/v1/characters'))[0]?.id}`]
    for (const target of targets) {
      expect((await lingtai.call('PUT', `/v1/admin/kill/${target}`)).status).toBe(204)
      expect((await lingtai.call('PUT', `/v1/admin/kill/${target}`)).status).toBe(204)
    }
    const flags = await items<KillFlag>('/v1/admin/kill')
    expect(flags.map((flag) => `${flag.scope}/${flag.scope_id}`).toSorted()).toEqual(targets.toSorted())
    expect(flags.every((flag) => flag.set_by === lingtai.ownerId)).toBe(true)
    for (const target of targets) expect((await lingtai.call('DELETE', `/v1/admin/kill/${target}`)).status).toBe(204)
    expect(await items('/v1/admin/kill')).toEqual([])
    const events = await items<AuditEvent>(`/v1/admin/events?stream=admin:${lingtai.ownerId}&limit=500`)
    expect(events.filter((event) => event.type === 'kill.set')).toHaveLength(3)
    expect(events.filter((event) => event.type === 'kill.lifted')).toHaveLength(3)
  })

  it.each([
    [`global/${randomUUID()}`, 400],
    [`owner/${randomUUID()}`, 404],
    [`character/${randomUUID()}`, 404],
    [`everything/${GLOBAL}`, 400],
  ])('refuses %s', async (target, status) => {
    expect((await lingtai.call('PUT', `/v1/admin/kill/${target}`)).status).toBe(status)
  })

  it('says so where there is nothing to lift', async () => {
    expect((await lingtai.call('DELETE', `/v1/admin/kill/global/${GLOBAL}`)).status).toBe(404)
  })
})

describe('the record, for admins', () => {
  it('pages back through all events without gap or double', async () => {
    const seen: number[] = []
    for (let before: string | null = ''; before !== null;) {
      const page = (await lingtai.call('GET', `/v1/admin/events?limit=3${before === '' ? '' : `&before=${before}`}`)).json() as {
        items: AuditEvent[]
        next_cursor: string | null
      }
      seen.push(...page.items.map((event) => event.position))
      before = page.next_cursor
    }
    const rows = await lingtai.system.database.query<{ position: number }>('SELECT position FROM events ORDER BY position DESC')
    expect(seen).toEqual(rows.map((row) => row.position))
  })

  it('filters by stream and type, and refuses a type that is none', async () => {
    const created = await items<AuditEvent>('/v1/admin/events?type=owner.created')
    expect(new Set(created.map((event) => event.type))).toEqual(new Set(['owner.created']))
    expect(created).toHaveLength(2)
    const answer = await lingtai.call('GET', '/v1/admin/events?type=nothing.happened')
    expect([answer.status, (answer.json() as Problem).errors?.[0]?.path]).toEqual([400, 'query.type'])
  })

  it('lists the outbox', async () => {
    const answer = await lingtai.call('GET', '/v1/admin/outbox?limit=5')
    expect(answer.status).toBe(200)
    expect(Array.isArray((answer.json() as { items: unknown[] }).items)).toBe(true)
  })
})

describe('owners', () => {
  it('are added with a link that signs them in, their own real realm and a first character', async () => {
    const { owner, signin_link: link } = (await lingtai.call('POST', '/v1/owners', { body: { name: 'Third' } })).json() as {
      owner: { id: string }
      signin_link: string
    }
    expect(link.startsWith(`${lingtai.baseUrl}/#signin=`)).toBe(true)
    const session = await lingtai.call('POST', '/v1/session', { token: null, body: { secret: link.split('=')[1] } })
    expect(session.json()).toMatchObject({ owner: { id: owner.id, name: 'Third', role: 'user' } })
    const token = await lingtai.tokenWith(['read'], owner.id)
    expect((await items<RealmView>('/v1/realms', token)).map((realm) => realm.kind)).toEqual(['real'])
    expect(await items('/v1/characters', token)).toHaveLength(1)
    expect((await items<{ id: string }>('/v1/owners')).map((one) => one.id)).toContain(owner.id)
  })

  it('have names of their own', async () => {
    const answer = await lingtai.call('POST', '/v1/owners', { body: { name: 'owner' } })
    expect([answer.status, (answer.json() as Problem).code, (answer.json() as Problem).errors?.[0]?.path]).toEqual([
      409,
      'conflict',
      'name',
    ])
    const twins = await Promise.all([1, 2, 3].map(() => lingtai.call('POST', '/v1/owners', { body: { name: 'Twin' } })))
    expect(twins.map((twin) => twin.status).toSorted()).toEqual([201, 409, 409])
  })

  it('are not made twice by starts that come at once', async () => {
    const made = await Promise.all([1, 2, 3].map(() => lingtai.system.identity.owners.ensureFirst()))
    expect(new Set(made.map((owner) => owner.id))).toEqual(new Set([lingtai.ownerId]))
  })
})

describe('worlds', () => {
  it('keeps fictions beside the one real realm', async () => {
    await lingtai.call('POST', '/v1/realms', { body: { kind: 'fiction', name: '海港' } })
    expect((await items<RealmView>('/v1/realms')).map((realm) => realm.kind)).toEqual(['real', 'fiction'])
    const second = await lingtai.call('POST', '/v1/realms', { body: { kind: 'real', name: 'Another' } })
    expect([second.status, (second.json() as Problem).errors?.[0]?.path]).toEqual([400, 'kind'])
  })

  it('keeps personas with their versions', async () => {
    const created = (
      await lingtai.call('POST', '/v1/personas', { body: { name: 'Mara', description: '一个旅人' } })
    ).json() as UserPersonaView
    expect(await items<UserPersonaView>('/v1/personas')).toEqual([created])
    expect(created).toMatchObject({ name: 'Mara', description: '一个旅人' })
    expect(((await lingtai.call('POST', '/v1/personas', { body: { name: 'Bare' } })).json() as UserPersonaView).description).toBe('')
  })

  it('imports a lorebook, for all or for one character', async () => {
    const file = JSON.stringify({
      name: 'Sea',
      entries: { 0: { uid: 0, key: ['sea'], content: 'grey' }, 1: { uid: 1, key: [' '], content: 'blank' } },
    })
    const forAll = (await lingtai.call('POST', '/v1/lorebooks/import', { body: file })).json() as {
      lorebook: LorebookView
      report: { code: string }[]
    }
    expect(forAll.lorebook).toMatchObject({ entries: 2, character_id: null })
    expect(forAll.report.map((finding) => finding.code)).toContain('blank_key')
    const [character] = await items<{ id: string; lore_entries: number }>('/v1/characters')
    await lingtai.call('POST', `/v1/lorebooks/import?character_id=${character?.id.toUpperCase()}`, { body: file })
    const [after] = await items<{ id: string; lore_entries: number }>('/v1/characters')
    expect(after?.lore_entries).toBe((character?.lore_entries ?? 0) + 2)
  })
})
