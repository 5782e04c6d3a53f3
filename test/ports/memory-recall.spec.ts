import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EmbedderRefusedError } from '#domains/memory/embeddings'
import { EmbeddingSpaceMismatchError } from '#domains/memory/ports'
import type { RecallQuery } from '#domains/memory/ports'
import { queryTokens } from '#domains/memory/query'
import { recallProfile } from '#domains/memory/recall-profile'
import { softFactor, vitality } from '#domains/memory/vitality'
import { EmbeddingError } from '#kernel/ports/embedder'
import type { Embedder } from '#kernel/ports/embedder'
import { createLexicalEmbedder } from '#model/lexical-embedder'
import { askedByNobody, MemoryWorld } from '../support/memory-world.ts'
import type { Person, Slice } from '../support/memory-world.ts'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

describe.each(portTiers)('recall on the %s tier', (name) => {
  let tier: PortTier
  let world: MemoryWorld
  let slice: Slice
  beforeAll(async () => {
    tier = await openPortTier(name)
    world = new MemoryWorld(tier)
    slice = await world.slice()
  })
  afterAll(() => tier.close())

  const ask = (person: Person, query: string, over: Partial<Parameters<Slice['recalls']['recall']>[0]> = {}) =>
    slice.recalls.recall({ ...person, queries: [{ text: query, weight: 1 }], runId: null, ...over })
  const texts = async (...args: Parameters<typeof ask>) => (await ask(...args)).items.map((item) => item.text)
  /** The legs themselves, with everything open that a caller can open. */
  const legs = async (
    person: Pick<Person, 'owner_id' | 'character_id' | 'realm_id'>,
    query: string,
    over: Partial<RecallQuery> = {},
    by: Slice = slice,
  ) => {
    const vector = await by.embeddings.query([{ text: query, weight: 1 }], askedByNobody)
    return by.recaller.recall({
      ...person,
      ...queryTokens([{ text: query, weight: 1 }]),
      vector: vector.leg === 'used' ? vector : null,
      levels: ['explicit', 'heavy'],
      includeProposed: false,
      includeReal: true,
      now: world.clock.now(),
      ...recallProfile('lexical'),
      limit: 50,
      ...over,
    })
  }

  it('finds Chinese by pairs and by one sign, byte for byte (R15)', async () => {
    const person = await world.person()
    const stored = '我们最近配置的 rerank 精排是什么模型'
    await world.remember(slice, person, [stored, '在周末吃夜宵'])
    expect(await texts(person, '精排模型')).toEqual([stored])
    const { candidates } = await legs(person, '精', { vector: null })
    expect(candidates.map((candidate) => candidate.text)).toEqual([stored])
    expect(candidates[0]).toMatchObject({ text_rank: 1, vector_rank: null })
  })

  it('answers a natural question among 600 memories (R18)', async () => {
    const person = await world.person()
    await plant(world, slice, person, 600, { vectors: false })
    const question = 'Could you please tell me again where I once bought that copper kettle?'
    await world.remember(slice, person, ['The user bought a copper kettle in Lisbon'])
    const { items } = await ask(person, question)
    expect(items[0]?.text).toBe('The user bought a copper kettle in Lisbon')
    expect((await legs(person, question, { vector: null })).candidates[0]?.text).toBe('The user bought a copper kettle in Lisbon')
  })

  it('shows nothing of another owner, character or realm in either leg, before fusion (R9)', async () => {
    const [person, stranger] = [await world.person(), await world.person()]
    const sister = { ...person, character_id: await world.character(person) }
    const other = await world.database.query<{ id: string }>(
      `INSERT INTO realms (id, owner_id, kind, name) VALUES (gen_random_uuid(), $1::uuid, 'fiction', 'Third') RETURNING id::text`,
      [person.owner_id],
    )
    const third = other[0]?.id ?? ''
    const secret = 'keeps a silver compass in the drawer'
    for (const [of, realmId] of [
      [person, person.realm_id],
      [person, person.fiction],
      [person, third],
      [sister, person.realm_id],
      [stranger, stranger.realm_id],
    ] as const) {
      await world.remember(slice, of, [secret], { realmId })
    }
    const seen = async (scope: Pick<Person, 'owner_id' | 'character_id' | 'realm_id'>, leg: 'text' | 'vector', exactUpTo: number) => {
      const { candidates } = await legs(scope, secret, leg === 'text' ? { vector: null } : { tokens: [], weights: [], exactUpTo })
      return candidates.map((candidate) => candidate.realm_id).sort()
    }
    for (const [leg, exactUpTo] of [
      ['text', 0],
      ['vector', 1_000],
      ['vector', 0],
    ] as const) {
      expect(await seen(person, leg, exactUpTo)).toEqual([person.realm_id])
      expect(await seen({ ...person, realm_id: person.fiction }, leg, exactUpTo)).toEqual([person.fiction, person.realm_id].sort())
      expect(await seen(stranger, leg, exactUpTo)).toEqual([stranger.realm_id])
      // Ids of one owner mixed with another's find nothing at all.
      expect(await seen({ ...person, owner_id: stranger.owner_id }, leg, exactUpTo)).toEqual([])
      expect(await seen({ ...person, realm_id: stranger.realm_id }, leg, exactUpTo)).toEqual([])
      expect(await seen({ ...person, character_id: stranger.character_id }, leg, exactUpTo)).toEqual([])
    }
    // How often a word stands in one scope says nothing in another.
    const score = async (scope: Person) => (await legs(scope, 'silver compass', { vector: null })).candidates[0]?.text_score
    expect(await score(person)).toBe(await score(stranger))
  })

  it('finds nothing with an empty list of levels, and proposals never (R10)', async () => {
    const person = await world.person()
    await world.remember(slice, person, ['likes plums', { content: 'The user eats plums for health', type: 'fact' }])
    expect(await texts(person, 'plums')).toEqual(['likes plums'])
    expect(await texts(person, 'plums', { levels: [] })).toEqual([])
    expect(await texts(person, 'plums', { levels: ['heavy'] })).toEqual([])
  })

  it('leaves a vector leg out that says nothing, and says so (R16)', async () => {
    const person = await world.person()
    const flat: Embedder = {
      space: { id: 'flat-4-v1', model: 'flat', version: 'v1', dimensions: 4 },
      embed: async (list) => list.map(() => Float32Array.of(0.5, 0.5, 0.5, 0.5)),
      isDegenerate: () => false,
    }
    const flatSlice = await world.slice({ embedder: flat })
    await world.remember(flatSlice, person, ['likes plums', '喜欢李子', 'likes rain'])
    const { items, auditId } = await flatSlice.recalls.recall({ ...person, queries: [{ text: '李子', weight: 1 }], runId: null })
    expect(items.map((item) => item.text)).toEqual(['喜欢李子'])
    expect(await flatSlice.recalls.audit(person.owner_id, auditId)).toMatchObject({
      vector_leg: 'degenerate',
      hits: [{ vector_rank: null, text_rank: 1 }],
    })
    const broken = await world.slice({
      embedder: {
        ...flat,
        embed: async (list, cause) => (list[0]?.startsWith('The kettle') ? flat.embed(list, cause) : Promise.reject(new Error('down'))),
      },
    })
    const without = await broken.recalls.recall({ ...person, queries: [{ text: '李子', weight: 1 }], runId: null })
    expect(without.items.map((item) => item.text)).toEqual(['喜欢李子'])
    expect(await broken.recalls.audit(person.owner_id, without.auditId)).toMatchObject({ vector_leg: 'unavailable' })
    expect(broken.reports).toHaveLength(1)
    const silent = await ask(person, '。。。')
    expect(silent.items).toEqual([])
    expect(await slice.recalls.audit(person.owner_id, silent.auditId)).toMatchObject({ vector_leg: 'degenerate' })
  })

  it('counts decay from the event or the last recall, not from the import, and strengthens once per run (R21)', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, [{ content: 'The user moved to the harbour yesterday', type: 'event' }], {
      at: '2025-06-01T12:00:00.000Z',
    })
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({ event_at: '2025-05-31T12:00:00.000Z', hits: 0 })
    const audited = async (runId: string | null) => {
      const { auditId } = await ask(person, 'harbour', { runId })
      return (await slice.recalls.audit(person.owner_id, auditId))?.hits[0]
    }
    const old = await audited(null)
    expect(old?.vitality).toBeCloseTo(2 ** (-366 / 120), 9)
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({ hits: 0 })
    const runId = await world.run(person)
    await audited(runId)
    await audited(runId)
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({ hits: 1, last_hit_at: world.clock.now().toISOString() })
    const fresh = await audited(runId)
    expect(fresh?.vitality).toBe(1)
    expect(fresh?.score ?? 0).toBeGreaterThan(old?.score ?? 0)
  })

  it('gives one slot to a memory that both legs find, and one to near-duplicates (R22)', async () => {
    const person = await world.person()
    await world.remember(slice, person, [
      'The user likes jasmine tea in the quiet morning',
      'The user likes jasmine tea in the quiet mornings',
      'likes jazz',
    ])
    const { items, auditId } = await ask(person, 'jasmine tea in the morning')
    expect(items).toHaveLength(1)
    const hits = (await slice.recalls.audit(person.owner_id, auditId))?.hits ?? []
    expect(new Set(hits.map((hit) => hit.memory_id)).size).toBe(hits.length)
    expect(hits.slice(0, 2).map(({ rank, cut_by }) => ({ rank, cut_by }))).toEqual([
      { rank: 1, cut_by: null },
      { rank: null, cut_by: 'near_duplicate' },
    ])
    expect(hits[0]).toMatchObject({ text_rank: expect.any(Number), vector_rank: expect.any(Number) })
  })

  it('masks a secret again that reached the store unmasked (R13)', async () => {
    const person = await world.person()
    await world.plant(slice, person, ['pays in shops with 4111 1111 1111 1111'])
    const { items } = await ask(person, 'pays in shops')
    expect(items).toMatchObject([{ text: 'pays in shops with [masked:card]', masked: true }])
  })

  it('writes down how each recall came about, by ids and numbers, and takes the salt with the query', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, ['likes rye bread'])
    const talk = await world.talk(person, [{ role: 'user', text: 'Which bread?' }])
    const [row] = await world.database.query<{ content_id: string }>('SELECT content_id FROM nodes WHERE id = $1::uuid', [
      talk.nodeIds[0] ?? '',
    ])
    const runId = await world.run(person)
    const { auditId } = await ask(person, 'Which bread?', { runId, queryContentIds: [row?.content_id ?? ''] })
    const audit = await slice.recalls.audit(person.owner_id, auditId)
    expect(audit).toMatchObject({
      run_id: runId,
      embedder: 'lexical-1024-v1',
      vector_leg: 'used',
      weights: { k: 60, text: 1, vector: recallProfile('lexical').vectorWeight },
      hits: [{ memory_id: id, rank: 1, text_rank: 1, text: 'likes rye bread' }],
    })
    expect((await slice.recalls.list(person.owner_id, { run_id: runId, limit: 5 })).items.map((item) => item.id)).toEqual([auditId])
    expect((await slice.recalls.list(person.owner_id, { memory_id: id, limit: 5 })).items.map((item) => item.id)).toEqual([auditId])
    expect((await slice.recalls.list((await world.person()).owner_id, { run_id: runId, limit: 5 })).items).toEqual([])
    const salted = () => world.count('recall_audits', 'id = $1::uuid AND query_salt IS NOT NULL', [auditId])
    expect(await salted()).toBe(1)
    await slice.deps.contents.erase({ ids: [row?.content_id ?? ''], cause: 'test' })
    expect(await salted()).toBe(0)
    await expect(world.database.execute('UPDATE recall_hits SET score = 1 WHERE audit_id = $1::uuid', [auditId])).rejects.toThrow(
      'append-only',
    )
    await expect(world.database.execute(`UPDATE recall_audits SET embedder = 'x' WHERE id = $1::uuid`, [auditId])).rejects.toThrow(
      'only ever loses its salt',
    )
  })

  it('reckons vitality and soft factors as the rule says', async () => {
    const person = await world.person()
    await world.remember(slice, person, ['likes copper', { content: 'likes copper and silver in spring', priority: 0.9 }], {
      at: '2026-02-01T00:00:00.000Z',
    })
    for (const { event_at, vitality: alive, score, text_rank, text } of (await legs(person, 'copper', { vector: null })).candidates) {
      const expected = vitality({
        eventAt: event_at,
        lastHitAt: null,
        now: world.clock.now(),
        halfLifeDays: recallProfile('lexical').halfLifeDays,
      })
      expect(alive).toBeCloseTo(expected, 9)
      const priority = text.includes('spring') ? 0.9 : 0.5
      expect(score).toBeCloseTo((1 / (60 + (text_rank ?? 0))) * softFactor({ vitality: alive, priority }), 9)
    }
  })

  it('gives the same by the index as by comparing every row, for scopes of any size', async () => {
    const person = await world.person()
    const planted = await plant(world, slice, person, 60)
    await plant(world, slice, await world.person(), 60)
    await fc.assert(
      fc.asyncProperty(fc.nat(59), async (at) => {
        const query = planted[at] ?? ''
        const [exact, indexed] = [
          await legs(person, query, { tokens: [], weights: [], exactUpTo: 1_000, depth: 5 }),
          await legs(person, query, { tokens: [], weights: [], exactUpTo: 0, depth: 5 }),
        ]
        expect(exact.candidates[0]?.text).toBe(query)
        expect(indexed.candidates[0]?.text).toBe(query)
      }),
      { numRuns: 10 },
    )
  })

  it('drops words that stand everywhere while two rarer ones remain, and keeps them where there is nothing else', async () => {
    const person = await world.person()
    await plant(world, slice, person, 50)
    const everywhere = (await legs(person, 'wanders', { vector: null, depth: 60 })).candidates
    expect(everywhere).toHaveLength(50)
    const told = (await legs(person, 'wanders willow17 copper17', { vector: null })).candidates
    expect(told).toHaveLength(1)
  })

  describe('changing the embedder (R17)', () => {
    const embedder = (dimensions: number, over: Partial<Embedder> = {}, id = `test-${dimensions}-v1`): Embedder => ({
      space: { id, model: 'test', version: 'v1', dimensions },
      embed: async (list) => list.map((text) => Float32Array.from({ length: dimensions }, (_, at) => Math.sin(at + text.length))),
      isDegenerate: () => false,
      ...over,
    })

    it('refuses at start what would mix or lose vectors, and says what to do', async () => {
      const person = await world.person()
      const first = await world.slice({ embedder: embedder(384) })
      await world.remember(first, person, ['likes plums'])
      const down = () => Promise.reject(new Error('no route'))
      await expect(world.slice({ embedder: embedder(512, { embed: down }) })).rejects.toThrow(EmbedderRefusedError)
      await expect(world.slice({ embedder: embedder(512, { embed: down }) })).rejects.toThrow('LINGTAI_EMBEDDING_MODEL')
      await expect(world.slice({ embedder: embedder(512, {}, 'test-384-v1') })).rejects.toThrow(EmbeddingSpaceMismatchError)
      await expect(
        world.slice({ embedder: embedder(512, { embed: async (list) => list.map(() => new Float32Array(384)) }) }),
      ).rejects.toThrow('384 dimensions instead of 512')
    })

    it('embeds again in the background, resumes after a kill, then drops the former vectors', async () => {
      const person = await world.person()
      const first = await world.slice({ embedder: createLexicalEmbedder() })
      await world.remember(first, person, ['likes plums', 'likes pears', { content: 'The user is a nurse', type: 'fact' }])
      let calls = 0
      const flaky = embedder(16, {
        embed: async (list, cause) => {
          if (++calls === 3) throw new Error('killed')
          return embedder(16).embed(list, cause)
        },
      })
      const second = await world.slice({ embedder: flaky })
      // Until then the text leg serves alone; vectors of two spaces never meet in one query.
      expect((await second.recalls.recall({ ...person, queries: [{ text: 'plums', weight: 1 }], runId: null })).items).toHaveLength(1)
      const mine = 'owner_id = $1::uuid AND space_id = (SELECT id FROM embedding_spaces WHERE slug = $2)'
      await expect(second.embeddings.embedMissing()).rejects.toThrow('killed')
      await second.embeddings.embedMissing()
      expect(await world.count('memory_vectors', mine, [person.owner_id, 'test-16-v1'])).toBe(3)
      expect(await world.count('memory_vectors', mine, [person.owner_id, 'lexical-1024-v1'])).toBe(0)
      expect(await second.embeddings.embedMissing()).toBe(0)
    })

    it('goes past a text that is refused and a character that may not ask, and comes back to both ever more seldom', async () => {
      const [poor, long, other] = [await world.person(), await world.person(), await world.person()]
      const asked: (readonly string[])[] = []
      let isPoor = true
      const picky = embedder(24, {
        embed: async (list, cause) => {
          if (cause.purpose === 'probe') return embedder(24).embed(list, cause)
          asked.push(list)
          if (isPoor && cause.characterId === poor.character_id)
            throw new EmbeddingError({ outcome: 'refused', code: 'max_cost_micros', retryable: false })
          if (list.some((text) => text.includes('ENDLESS')))
            throw new EmbeddingError({ outcome: 'failed', code: 'bad_request', retryable: false })
          return embedder(24).embed(list, cause)
        },
      })
      const slice = await world.slice({ embedder: picky })
      const vectorsOf = (person: Person): Promise<number> =>
        world.count('memory_vectors', 'owner_id = $1::uuid AND space_id = (SELECT id FROM embedding_spaces WHERE slug = $2)', [
          person.owner_id,
          'test-24-v1',
        ])
      await slice.embeddings.embedMissing()
      await world.plant(slice, poor, ['keeps a goat'], { vectors: false })
      await world.plant(slice, long, ['likes rain', 'an ENDLESS tale', 'likes snow', 'likes hail', 'likes fog'], { vectors: false })
      await world.plant(slice, other, ['plays the violin'], { vectors: false })
      asked.length = 0
      expect(await slice.embeddings.embedMissing()).toBe(5)
      expect([await vectorsOf(poor), await vectorsOf(long), await vectorsOf(other)]).toEqual([0, 4, 1])
      const round = async (): Promise<number> => {
        asked.length = 0
        await slice.embeddings.embedMissing()
        return asked.length
      }
      expect(await round()).toBe(0)
      const rounds: number[] = []
      for (let minutes = 0; minutes < 16; minutes++) {
        world.clock.advance({ days: 61 / 86_400 })
        rounds.push(await round())
      }
      // After one minute, two, four and eight: both of them each time.
      expect(rounds).toEqual([2, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0])
      isPoor = false
      world.clock.advance({ days: 1 })
      expect(await slice.embeddings.embedMissing()).toBe(1)
      expect([await vectorsOf(poor), await vectorsOf(long)]).toEqual([1, 4])
    })

    it('takes it for the endpoint’s fault where every text is refused', async () => {
      const person = await world.person()
      let requests = 0
      const broken = embedder(28, {
        embed: async (list, cause) => {
          if (cause.purpose === 'probe') return embedder(28).embed(list, cause)
          requests += 1
          throw new EmbeddingError({ outcome: 'failed', code: 'bad_request', retryable: false })
        },
      })
      const slice = await world.slice({ embedder: broken })
      const texts = Array.from({ length: 20 }, (_, index) => `likes the number ${index}`)
      await world.plant(slice, person, texts, { vectors: false })
      await expect(slice.embeddings.embedMissing()).rejects.toThrow('bad_request')
      expect(requests).toBeLessThan(40)
    })
  })
})

/** Many memories, each with words of its own beside one that all share; answers their texts. */
async function plant(world: MemoryWorld, slice: Slice, person: Person, count: number, options?: { vectors: boolean }): Promise<string[]> {
  const words = ['meadow', 'lantern', 'harbour', 'willow', 'pepper', 'granite', 'velvet', 'thunder']
  const texts = Array.from({ length: count }, (_, index) => {
    const some = words.slice(index % 4, (index % 4) + 4).map((word) => `${word}${index}`)
    return `wanders ${some.join(' ')} copper${index}`
  })
  await world.plant(slice, person, texts, options)
  return texts
}
