import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { saltedDigest } from '#kernel/record/chain'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

const CHUNK = 512 * 1024

describe.each(portTiers)('ContentStore on the %s tier', (name) => {
  let tier: PortTier
  let ownerId: string
  beforeAll(async () => {
    tier = await openPortTier(name)
    ownerId = (await tier.character()).ownerId
  })
  afterAll(() => tier.close())

  const put = (content: string | Uint8Array, more: { id?: string; media_type?: string; derived_from?: string[] } = {}) =>
    tier.database.run(() => tier.contents.put({ owner_id: ownerId, media_type: 'text/plain', content, ...more }))
  const read = async (id: string) => (await tier.contents.get([id])).get(id)
  const erase = (ids: string[]) => tier.database.run(() => tier.contents.erase({ ids, cause: 'test' }))

  it('gives back a text with its salt, its digest and its size in bytes', async () => {
    const text = '灵台 “quoted” \n\t\\ 😀'
    const { id, digest } = await put(text)
    const stored = await read(id)
    expect(stored).toMatchObject({ id, owner_id: ownerId, media_type: 'text/plain', body: text, bytes: null, layout: null, erased: false })
    expect(stored?.size).toBe(Buffer.byteLength(text))
    expect(stored?.salt).toHaveLength(32)
    expect(Buffer.from(stored?.digest ?? [])).toEqual(Buffer.from(digest))
    expect(Buffer.from(saltedDigest(stored?.salt ?? new Uint8Array(), text))).toEqual(Buffer.from(digest))
  })

  it('gives back bytes, a layout, and a salt and an id that were chosen before', async () => {
    const bytes = new Uint8Array([0, 255, 10, 0])
    const image = await put(bytes, { media_type: 'image/png' })
    expect(await read(image.id)).toMatchObject({ body: null, bytes: Buffer.from(bytes) })
    const [id, salt] = [tier.ids.next(), tier.ids.bytes(32)]
    const layout = {
      parts: [{ kind: 'text' as const, from: 0, to: 2 }],
      segments: [{ part: 0, from: 0, to: 2, salt: Buffer.from(salt).toString('base64') }],
    }
    const placed = await tier.database.run(() =>
      tier.contents.put({ id, salt, owner_id: ownerId, media_type: 'text/plain', content: 'ab', layout }),
    )
    expect(placed.id).toBe(id)
    expect(Buffer.from(placed.digest)).toEqual(Buffer.from(saltedDigest(salt, 'ab')))
    expect(await read(id)).toMatchObject({ layout, salt: Buffer.from(salt) })
  })

  it('salts: the same text twice has two digests', async () => {
    const [first, second] = [await put('1234'), await put('1234')]
    expect(Buffer.from(first.digest)).not.toEqual(Buffer.from(second.digest))
  })

  it('keeps what is larger than a statement may carry, cut anywhere, also inside a character (decision 9)', async () => {
    // Three bytes a character: no multiple of a chunk's size.
    const text = '灵'.repeat(CHUNK / 2)
    const big = await put(text)
    const stored = await read(big.id)
    expect(stored?.body === text).toBe(true)
    expect(stored?.size).toBe(Buffer.byteLength(text))
    const bytes = new Uint8Array(2 * CHUNK + 7).map((_, index) => index % 251)
    const file = await put(bytes, { media_type: 'application/octet-stream' })
    const found = await read(file.id)
    expect(found?.body).toBeNull()
    expect(Buffer.compare(found?.bytes ?? new Uint8Array(), bytes)).toBe(0)
    expect(Buffer.from(saltedDigest(found?.salt ?? new Uint8Array(), bytes))).toEqual(Buffer.from(file.digest))
    const exact = new Uint8Array(CHUNK).fill(7)
    expect(Buffer.compare((await read((await put(exact, { media_type: 'image/png' })).id))?.bytes ?? new Uint8Array(), exact)).toBe(0)
  })

  it('stores many in order, large and binary ones among them, as one by one', async () => {
    const source = await put('source')
    const contents = [
      { owner_id: ownerId, media_type: 'text/plain', content: 'first' },
      { owner_id: ownerId, media_type: 'text/plain', content: 'x'.repeat(CHUNK + 1) },
      { owner_id: ownerId, media_type: 'application/json', content: '{"a":[1]}', derived_from: [source.id] },
      { owner_id: ownerId, media_type: 'image/png', content: new Uint8Array([1, 2]) },
      ...Array.from({ length: 600 }, (_, index) => ({ owner_id: ownerId, media_type: 'text/plain', content: `text ${index}` })),
    ]
    const stored = await tier.database.run(() => tier.contents.putMany(contents))
    const found = await tier.contents.get(stored.map((entry) => entry.id))
    expect(stored).toHaveLength(contents.length)
    stored.forEach(({ id, digest }, index) => {
      const given = contents[index]?.content ?? ''
      const content = found.get(id)
      expect(content?.body ?? content?.bytes).toEqual(typeof given === 'string' ? given : Buffer.from(given))
      expect(Buffer.from(saltedDigest(content?.salt ?? new Uint8Array(), given))).toEqual(Buffer.from(digest))
    })
    expect(await erase([source.id])).toEqual([source.id, stored[2]?.id ?? ''].toSorted())
  })

  it('answers only what is there', async () => {
    const { id } = await put('here')
    expect([...(await tier.contents.get([id, tier.ids.next(), id])).keys()]).toEqual([id])
    expect((await tier.contents.get([])).size).toBe(0)
  })

  it('is part of its unit of work', async () => {
    const id = tier.ids.next()
    await tier.database
      .run(async () => {
        await tier.contents.put({ id, owner_id: ownerId, media_type: 'text/plain', content: 'x'.repeat(CHUNK + 1) })
        expect((await tier.contents.get([id])).get(id)?.size).toBe(CHUNK + 1)
        throw new Error('no')
      })
      .catch(() => undefined)
    expect(await read(id)).toBeUndefined()
  })

  describe('erasing', () => {
    it('takes the text, its salt and everything that was derived from it, at any remove, and leaves the proof (decision 13)', async () => {
      const source = await put('a secret')
      const other = await put('harmless')
      const summary = await put('about the secret', { derived_from: [other.id, source.id] })
      const large = await put('x'.repeat(CHUNK + 1), { derived_from: [summary.id] })
      expect(await erase([source.id])).toEqual([source.id, summary.id, large.id].toSorted())
      for (const { id, digest } of [source, summary, large]) {
        expect(await read(id)).toMatchObject({
          erased: true,
          body: null,
          bytes: null,
          salt: null,
          layout: null,
          digest: Buffer.from(digest),
        })
      }
      expect(await read(other.id)).toMatchObject({ erased: false, body: 'harmless' })
      const left = await tier.database.query('SELECT 1 FROM content_chunks WHERE content_id = $1::uuid', [large.id])
      expect(left).toEqual([])
    })

    it('takes what is derived of it afterwards too: the text is not kept, and the proof is', async () => {
      const source = await put('a secret')
      await erase([source.id])
      const late = await put('about the secret', { derived_from: [source.id] })
      const harmless = { owner_id: ownerId, media_type: 'text/plain', content: 'harmless' }
      const many = await tier.database.run(() =>
        tier.contents.putMany([harmless, { ...harmless, content: 'once more', derived_from: [late.id] }]),
      )
      const ids = [late, ...many].map(({ id }) => id)
      const found = await tier.contents.get(ids)
      expect(ids.map((id) => found.get(id)?.body)).toEqual([null, 'harmless', null])
      expect(found.get(late.id)).toMatchObject({ erased: true, salt: null, digest: Buffer.from(late.digest) })
      const ledger = await tier.database.query('SELECT cause FROM erasures WHERE content_id = ANY ($1::uuid[])', [ids])
      expect(ledger).toEqual([{ cause: 'source_erased' }, { cause: 'source_erased' }])
    })

    it('takes what is derived of it at the same time, whichever comes first', async () => {
      for (let round = 0; round < 20; round++) {
        const source = await put('a secret')
        const derive = (): Promise<{ id: string }> =>
          tier.database.run(async () => {
            const derived = await tier.contents.put({
              owner_id: ownerId,
              media_type: 'text/plain',
              content: 'about the secret',
              derived_from: [source.id],
            })
            await tier.database.query('SELECT 1')
            return derived
          })
        const [derived] = await Promise.all(round % 2 === 0 ? [derive(), erase([source.id])] : [derive(), derive(), erase([source.id])])
        expect(await read(derived.id)).toMatchObject({ erased: true, body: null })
      }
    })

    it('follows what goes round in a circle once', async () => {
      const [first, second] = [tier.ids.next(), tier.ids.next()]
      await put('an answer', { id: first, derived_from: [second] })
      await put('a request that holds the answer', { id: second, derived_from: [first] })
      expect(await erase([second])).toEqual([first, second])
    })

    it('is told in the ledger and in the log, once', async () => {
      const { id } = await put('gone')
      await erase([id])
      expect(await erase([id])).toEqual([])
      const ledger = await tier.database.query('SELECT owner_id::text, cause FROM erasures WHERE content_id = $1::uuid', [id])
      expect(ledger).toEqual([{ owner_id: ownerId, cause: 'test' }])
      const events = await tier.log.read(`admin:${ownerId}`, { types: ['content.erased'] })
      expect(events.filter((event) => event.record.payload['content_id'] === id)).toHaveLength(1)
    })

    it('is taken back with its unit of work', async () => {
      const { id } = await put('still wanted')
      await tier.database
        .run(async () => {
          await tier.contents.erase({ ids: [id], cause: 'test' })
          throw new Error('no')
        })
        .catch(() => undefined)
      expect(await read(id)).toMatchObject({ erased: false, body: 'still wanted' })
    })
  })

  it.each([
    ['another text', `UPDATE contents SET body = 'other' WHERE id = $1::uuid`],
    ['another digest', `UPDATE contents SET digest = sha256('x') WHERE id = $1::uuid`],
    ['no row at all', 'DELETE FROM contents WHERE id = $1::uuid'],
  ])('cannot be made into %s, whoever asks', async (_what, sql) => {
    const { id } = await put('as it is')
    await expect(tier.database.execute(sql, [id])).rejects.toThrow(/immutable|cannot be deleted/)
    expect(await read(id)).toMatchObject({ body: 'as it is' })
  })

  it('brings nothing back that was erased', async () => {
    const { id } = await put('gone')
    await erase([id])
    const revive = `UPDATE contents SET body = 'back', salt = sha256('x'), erased_at = NULL WHERE id = $1::uuid`
    await expect(tier.database.execute(revive, [id])).rejects.toThrow(/immutable/)
  })
})
