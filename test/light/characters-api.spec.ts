import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AuditEvent, CharacterVersionView, CharacterView, ImportedCharacter, LorebookView } from '#contracts'
import { exportCard, parseCard, plainPng } from '#domains/characters/cards/index'
import { startTestSystem } from '#test/support/system'
import type { TestSystem } from '#test/support/system'

let lingtai: TestSystem
beforeAll(async () => {
  lingtai = await startTestSystem()
})
afterAll(() => lingtai.close())

async function call<View>(method: string, path: string, body?: unknown, status = [200, 201]): Promise<View> {
  const answer = await lingtai.call(method, path, {
    body,
    headers: body instanceof Uint8Array ? { 'content-type': 'application/octet-stream' } : {},
  })
  expect(status, `${method} ${path}: ${answer.text.slice(0, 300)}`).toContain(answer.status)
  return answer.text === '' ? (undefined as View) : (answer.json() as View)
}
const importCard = (file: string | Uint8Array): Promise<ImportedCharacter> => call('POST', '/v1/characters/import', file)
const exported = async (id: string, format: string): Promise<Uint8Array> => {
  const response = await fetch(`${lingtai.baseUrl}/v1/characters/${id}/export?format=${format}`, {
    headers: { authorization: `Bearer ${lingtai.token}` },
  })
  expect(response.status).toBe(200)
  return new Uint8Array(await response.arrayBuffer())
}
const eventsOf = async (id: string): Promise<AuditEvent[]> => {
  const { items } = await call<{ items: AuditEvent[] }>('GET', `/v1/admin/events?stream=character:${id}`)
  return items.toReversed()
}
const lorebooksOf = async (id: string): Promise<LorebookView[]> => {
  const { items } = await call<{ items: LorebookView[] }>('GET', '/v1/lorebooks')
  return items.filter((book) => book.character_id === id)
}

const cardV1 = {
  name: 'Ada',
  description: 'd',
  personality: 'p',
  scenario: 's',
  first_mes: 'Hi',
  mes_example: 'm',
  my_root_field: { deep: 12345678901234567890n.toString() },
}
const entry = { keys: ['sea'], content: 'The sea is grey.', extensions: {}, insertion_order: 3, unknown_entry_field: true }
const cardV2Text = `{"spec":"chara_card_v2","spec_version":"2.0","my_root":1.0,"data":{"name":"A/B: \\"测试\\"","description":"d","my_big":12345678901234567890,"extensions":{"depth_prompt":{"prompt":"x"},"own":[1.0]},"character_book":{"entries":[${JSON.stringify(entry)}],"extensions":{}}}}`

describe('a new owner', () => {
  it('finds a first character, said to be one, that is trusted and complete', async () => {
    const { items } = await call<{ items: CharacterView[] }>('GET', '/v1/characters')
    const demo = items.find((character) => character.demo)
    expect(demo).toMatchObject({ accepted: true, trust: 'workspace', version: 1, realm: { kind: 'real' } })
    expect(demo?.first_message.length).toBeGreaterThan(50)
    expect(parseCard(await exported(demo?.id ?? '', 'json-v3')).report).toEqual([])
  })
})

describe('importing cards', () => {
  it('takes version 1 and says so', async () => {
    const { character, format, spec_version: specVersion } = await importCard(JSON.stringify(cardV1))
    expect({ format, specVersion }).toEqual({ format: 'json', specVersion: 'v1' })
    expect(character).toMatchObject({
      name: 'Ada',
      first_message: 'Hi',
      accepted: false,
      trust: 'untrusted',
      has_avatar: false,
      lore_entries: 0,
    })
  })

  it('C2, C3, C5: takes version 2 with a bare book, its name kept exactly', async () => {
    const { character } = await importCard(cardV2Text)
    expect(character).toMatchObject({ name: 'A/B: "测试"', lore_entries: 1 })
    const [book] = await lorebooksOf(character.id)
    expect(book).toMatchObject({ entries: 1 })
    const rows = await lingtai.system.database.query<{ body: string; settings: Record<string, unknown> }>(
      `SELECT c.body, b.settings FROM lorebooks b JOIN lore_entries e ON e.lorebook_id = b.id
       JOIN lore_entry_versions v ON v.id = e.current_version_id JOIN contents c ON c.id = v.entry_content_id WHERE b.id = $1::uuid`,
      [book?.id ?? ''],
    )
    expect(JSON.parse(rows[0]?.body ?? '')).toMatchObject({ keys: ['sea'], enabled: true, selective: false, order: 3 })
    expect(rows[0]?.settings).not.toHaveProperty('scan_depth')
  })

  it('C4: gives back byte for byte what was not changed, unknown fields and digits too', async () => {
    const { character } = await importCard(cardV2Text)
    const again = Buffer.from(await exported(character.id, 'json-v2')).toString()
    expect(again).toContain('"my_root":1.0')
    expect(again).toContain('"my_big":12345678901234567890')
    expect(again).toContain('"own":[1.0]')
    expect(again).toContain('"unknown_entry_field":true')
  })

  it('C6: takes a PNG, keeps its own bytes, and writes both versions into the one it gives', async () => {
    const png = exportCard({ source: cardV2Text, avatarPng: plainPng('Ada') }, 'png')
    const { character, format } = await importCard(png)
    expect(format).toBe('png')
    expect(character.has_avatar).toBe(true)
    const avatar = await fetch(`${lingtai.baseUrl}/v1/characters/${character.id}/avatar`, {
      headers: { authorization: `Bearer ${lingtai.token}` },
    })
    expect(new Uint8Array(await avatar.arrayBuffer())).toEqual(new Uint8Array(png))
    expect(avatar.headers.get('content-security-policy')).toMatch(/sandbox/)
    const tag = avatar.headers.get('etag') ?? ''
    const unchanged = await fetch(`${lingtai.baseUrl}/v1/characters/${character.id}/avatar`, {
      headers: { authorization: `Bearer ${lingtai.token}`, 'if-none-match': tag },
    })
    expect([unchanged.status, await unchanged.text()]).toEqual([304, ''])
    const text = Buffer.from(await exported(character.id, 'png')).toString('latin1')
    expect(text).toContain('chara\0')
    expect(text).toContain('ccv3\0')
  })

  it('keeps a file over a megabyte whole, with a byte order mark', async () => {
    const card = { spec: 'chara_card_v3', spec_version: '3.0', data: { name: 'Long', description: '长'.repeat(600_000), extensions: {} } }
    const file = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(JSON.stringify(card))])
    const { character, report } = await importCard(new Uint8Array(file))
    expect(report.map((finding) => finding.code)).toContain('byte_order_mark')
    expect(character.description).toBe(card.data.description)
    const kept = await lingtai.system.database.query<{ size: number }>(
      "SELECT size FROM contents WHERE media_type = 'application/octet-stream'",
    )
    expect(kept.map((row) => row.size)).toContain(file.byteLength)
    expect(parseCard(await exported(character.id, 'json-v3')).card.description).toBe(card.data.description)
  })

  it('takes a book of thousands of entries in one go', async () => {
    const entries = Array.from({ length: 3000 }, (_, index) => ({
      keys: [`key ${index}`],
      content: `entry ${index}`,
      extensions: {},
      enabled: true,
      insertion_order: index,
    }))
    const { character } = await importCard(
      JSON.stringify({ spec: 'chara_card_v2', spec_version: '2.0', data: { name: 'Wide', character_book: { entries, extensions: {} } } }),
    )
    expect(character.lore_entries).toBe(3000)
    const order = await lingtai.system.database.query<{ list_position: number; content: string }>(
      `SELECT e.list_position, c.body::jsonb ->> 'content' AS content FROM lorebooks b JOIN lore_entries e ON e.lorebook_id = b.id
       JOIN lore_entry_versions v ON v.id = e.current_version_id JOIN contents c ON c.id = v.entry_content_id
       WHERE b.character_id = $1::uuid ORDER BY e.list_position`,
      [character.id],
    )
    expect(order.map((row) => row.content)).toEqual(entries.map((one) => one.content))
    expect(order.map((row) => row.list_position)).toEqual(entries.map((_, index) => index))
  })

  it('names the place in a file that it refuses, and keeps nothing of it', async () => {
    const before = await call<{ items: unknown[] }>('GET', '/v1/characters?limit=200')
    const answer = await lingtai.call('POST', '/v1/characters/import', { body: '{"data":{"name":"x","tags":["a\\u0000b"]}}' })
    expect(answer.status).toBe(422)
    expect(answer.json()).toMatchObject({ code: 'invalid_file', data: { reason: 'nul_character' }, errors: [{ path: 'data.tags[0]' }] })
    expect((await call<{ items: unknown[] }>('GET', '/v1/characters?limit=200')).items.length).toBe(before.items.length)
  })
})

describe('accepting, changing, deleting', () => {
  it('stays untrusted until it is accepted, once', async () => {
    const { character } = await importCard(JSON.stringify(cardV1))
    const accepted = await call<CharacterView>('POST', `/v1/characters/${character.id}/accept`)
    expect(accepted).toMatchObject({ accepted: true, trust: 'workspace' })
    await call('POST', `/v1/characters/${character.id}/accept`)
    expect((await eventsOf(character.id)).map((event) => event.type)).toEqual(['character.created', 'character.accepted'])
  })

  it('makes an immutable version of each change, and none of no change', async () => {
    const { character } = await importCard(cardV2Text)
    const changed = await call<CharacterView>('POST', `/v1/characters/${character.id}/versions`, { description: 'new', tags: ['t'] })
    expect(changed).toMatchObject({ version: 2, description: 'new', tags: ['t'], name: character.name, accepted: false, lore_entries: 1 })
    expect(await call('POST', `/v1/characters/${character.id}/versions`, { description: 'new' })).toMatchObject({ version: 2 })
    const { items } = await call<{ items: CharacterVersionView[] }>('GET', `/v1/characters/${character.id}/versions`)
    expect(items.map(({ version, origin, current }) => ({ version, origin, current }))).toEqual([
      { version: 2, origin: 'authored', current: true },
      { version: 1, origin: 'import', current: false },
    ])
    const text = Buffer.from(await exported(character.id, 'json-v2')).toString()
    expect(text).toContain('"my_big":12345678901234567890')
    expect(JSON.parse(text)).toMatchObject({ spec: 'chara_card_v2', data: { description: 'new' } })
    expect((await eventsOf(character.id)).map((event) => event.type)).toEqual(['character.created', 'character.versioned'])
  })

  it('lets changes that come at once all count', async () => {
    const created = await call<CharacterView>('POST', '/v1/characters', { name: 'Busy' })
    await Promise.all(['a', 'b', 'c', 'd'].map((personality) => call('POST', `/v1/characters/${created.id}/versions`, { personality })))
    expect(await call<CharacterView>('GET', `/v1/characters/${created.id}`)).toMatchObject({ version: 5 })
  })

  it('trusts what the owner wrote, and puts it where they say', async () => {
    const realm = await call<{ id: string }>('POST', '/v1/realms', { kind: 'fiction', name: 'Sea' })
    const created = await call<CharacterView>('POST', '/v1/characters', {
      name: 'Own',
      description: '原创',
      alternate_greetings: ['a'],
      realm_id: realm.id,
    })
    expect(created).toMatchObject({
      accepted: true,
      trust: 'workspace',
      description: '原创',
      alternate_greetings: ['a'],
      realm: { id: realm.id, kind: 'fiction' },
    })
  })

  it('erases what a deleted character was made of, and shows it no more', async () => {
    const { character } = await importCard(exportCard({ source: cardV2Text, avatarPng: plainPng('Gone') }, 'png'))
    await call('DELETE', `/v1/characters/${character.id}`, undefined, [204])
    await call('GET', `/v1/characters/${character.id}`, undefined, [404])
    await call('GET', `/v1/characters/${character.id}/avatar`, undefined, [404])
    expect(await lorebooksOf(character.id)).toEqual([])
    const left = await lingtai.system.database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM persona_versions v JOIN contents c ON c.id = v.card_content_id OR c.id = ANY (SELECT unnest(d.derived_from) FROM contents d WHERE d.id = v.card_content_id)
       WHERE v.character_id = $1::uuid AND c.erased_at IS NULL`,
      [character.id],
    )
    expect(left[0]?.count).toBe(0)
    expect((await eventsOf(character.id)).map((event) => event.type)).toEqual(['character.created', 'character.deleted'])
    expect(await call('POST', '/v1/admin/verify')).toMatchObject({ intact: true })
  })

  it('pages through the list without gap or double', async () => {
    const whole = await call<{ items: CharacterView[] }>('GET', '/v1/characters?limit=200')
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { items: CharacterView[]; next_cursor: string | null } = await call(
        'GET',
        `/v1/characters?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      seen.push(...page.items.map((character) => character.id))
      cursor = page.next_cursor
    }
    expect(seen).toEqual(whole.items.map((character) => character.id))
  })
})
