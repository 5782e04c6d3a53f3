import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askedByNobody, MemoryWorld, proposed, requestOf } from '../support/memory-world.ts'
import type { Person, Slice } from '../support/memory-world.ts'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

describe.each(portTiers)('memory and consent on the %s tier', (name) => {
  let tier: PortTier
  let world: MemoryWorld
  let slice: Slice
  beforeAll(async () => {
    tier = await openPortTier(name)
    world = new MemoryWorld(tier)
    slice = await world.slice()
  })
  afterAll(() => tier.close())

  const recalled = async (person: Person, query: string) => {
    const { items } = await slice.recalls.recall({ ...person, queries: [{ text: query, weight: 1 }], runId: null })
    return items.map((item) => item.text)
  }
  /** Derives a memory that the model puts in the place of the first of its pool. */
  const replaceFirst = async (person: Person, content: string, action: 'update' | 'merge' = 'update') => {
    const talk = await world.talk(person, [
      { role: 'user', text: content },
      { role: 'character', text: 'Noted.' },
    ])
    slice.answer((question) => {
      if (question.purpose !== 'dedupe') return proposed(talk.nodeIds[0] ?? '', { content })
      const ids = requestOf(question).pool.map((memory) => memory.id)
      return { decisions: [{ index: 0, action, target_ids: action === 'update' ? ids.slice(0, 1) : ids }] }
    })
    await slice.extraction.extract(await world.canonize(talk))
  }
  const refusedBy = (code: string) => expect.objectContaining({ message: expect.stringContaining(code) as string })

  it('lets an update take the place of a memory, keeps the chain, and takes it back on undo (R6)', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, ["The user's favourite player is Ronaldo"])
    await replaceFirst(person, "The user's favourite player is now Messi")
    expect(await recalled(person, 'favourite player')).toEqual(["The user's favourite player is now Messi"])
    const updated = await slice.memories.get(person.owner_id, id)
    expect(updated.versions.map(({ version, cause, live }) => ({ version, cause, live }))).toEqual([
      { version: 2, cause: 'update', live: true },
      { version: 1, cause: 'extract', live: false },
    ])
    expect(updated.sources).toHaveLength(2)
    expect(await slice.memories.undo(person.owner_id, id)).toMatchObject({
      state: 'live',
      version: 1,
      text: "The user's favourite player is Ronaldo",
    })
    expect(await recalled(person, 'favourite player')).toEqual(["The user's favourite player is Ronaldo"])
    const texts = async () => (await slice.memories.get(person.owner_id, id)).versions.map((version) => version.text)
    expect(await texts()).toEqual(["The user's favourite player is now Messi", "The user's favourite player is Ronaldo"])
    // The undone text goes when the window ends; by the clock at once, in the store when the job has tidied.
    world.clock.advance({ days: 8 })
    expect(await texts()).toEqual([null, "The user's favourite player is Ronaldo"])
    await slice.upkeep.eraseExpired()
    expect(
      await world.count('contents', `owner_id = $1::uuid AND body LIKE '%now Messi' AND media_type = 'text/plain'`, [person.owner_id]),
    ).toBe(1) // the message itself
    expect((await world.events(person)).map((event) => event.type)).toEqual([
      'memory.proposed',
      'extraction.finished',
      'memory.versioned',
      'extraction.finished',
      'memory.decided',
    ])
  })

  it('never recalls what was merged, and brings it back when the merge is undone (R19)', async () => {
    const person = await world.person()
    const [first = '', second = ''] = await world.remember(slice, person, ['enjoys hiking in spring', 'enjoys hiking in autumn'])
    await replaceFirst(person, 'enjoys hiking in spring and autumn', 'merge')
    expect(await recalled(person, 'hiking')).toEqual(['enjoys hiking in spring and autumn'])
    const states = async () => (await slice.memories.list(person.owner_id, { limit: 10 })).items.map(({ id, state }) => [id, state])
    const survivor = (await states()).find(([, state]) => state === 'live')?.[0] ?? ''
    const merged = survivor === first ? second : first
    expect(await slice.memories.get(person.owner_id, merged)).toMatchObject({ state: 'merged', versions: [{ live: true }] })
    expect((await slice.memories.get(person.owner_id, survivor)).sources).toHaveLength(3)
    await slice.memories.undo(person.owner_id, survivor)
    expect((await recalled(person, 'hiking')).sort()).toEqual(['enjoys hiking in autumn', 'enjoys hiking in spring'])
  })

  it('makes a change of a heavy memory wait, and puts it in place when the owner confirms', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, [{ content: 'The user is allergic to nuts', type: 'fact' }])
    expect(await recalled(person, 'allergic nuts')).toEqual([])
    expect(await slice.memories.confirm(person.owner_id, id, {})).toMatchObject({ state: 'live', level: 'heavy', undo_until: null })
    expect(await recalled(person, 'allergic nuts')).toEqual(['The user is allergic to nuts'])
    await replaceFirst(person, 'The user is allergic to nuts and to eggs')
    expect(await recalled(person, 'allergic nuts')).toEqual(['The user is allergic to nuts'])
    const [proposal] = (await slice.memories.list(person.owner_id, { state: 'proposed', limit: 10 })).items
    expect(proposal).toMatchObject({ text: 'The user is allergic to nuts and to eggs', level: 'heavy' })
    await slice.memories.confirm(person.owner_id, proposal?.id ?? '', {})
    expect(await recalled(person, 'allergic nuts')).toEqual(['The user is allergic to nuts and to eggs'])
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({ state: 'merged' })
  })

  it('confirms with the owner’s own words, masked like any other', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, [{ content: 'The user is a nurse', type: 'fact' }])
    const view = await slice.memories.confirm(person.owner_id, id, { text: 'The user is a paramedic, badge sk-abc123def456' })
    expect(view).toMatchObject({ state: 'live', text: 'The user is a paramedic, badge [masked:key]', version: 2 })
    expect(await recalled(person, 'paramedic')).toEqual(['The user is a paramedic, badge [masked:key]'])
    expect(await world.count('contents', `owner_id = $1::uuid AND body LIKE '%sk-abc123def456%'`, [person.owner_id])).toBe(0)
    expect(await world.count('memory_terms', `owner_id = $1::uuid AND token LIKE '%abc123%'`, [person.owner_id])).toBe(0)
    await expect(slice.memories.confirm(person.owner_id, id, {})).rejects.toMatchObject({ code: 'wrong_state' })
  })

  it('corrects by a new version, against the version that the owner saw', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, ['likes black tea'])
    expect(await slice.memories.correct(person.owner_id, id, { text: 'likes green tea', version: 1 })).toMatchObject({
      version: 2,
      level: 'explicit',
      undo_until: null,
    })
    expect(await recalled(person, 'tea')).toEqual(['likes green tea'])
    await expect(slice.memories.correct(person.owner_id, id, { text: 'likes mint tea', version: 1 })).rejects.toMatchObject({
      code: 'revision_conflict',
    })
    await expect(slice.memories.undo(person.owner_id, id)).rejects.toMatchObject({ code: 'wrong_state' })
    const private_ = await slice.memories.correct(person.owner_id, id, { text: 'likes the tea that my mother brews', version: 2 })
    expect(private_).toMatchObject({ level: 'heavy', state: 'live', sensitive: true, topics: ['third_person'] })
    expect(await recalled(person, 'tea')).toEqual(['likes the tea that my mother brews'])
  })

  it('joins a correction with the memory that says so already', async () => {
    const person = await world.person()
    const [first = '', second = ''] = await world.remember(slice, person, ['likes mint tea', 'likes black coffee'])
    expect(await slice.memories.correct(person.owner_id, second, { text: 'Likes mint tea.', version: 1 })).toMatchObject({
      state: 'merged',
    })
    expect(await recalled(person, 'likes mint tea coffee')).toEqual(['likes mint tea'])
    expect((await slice.memories.get(person.owner_id, first)).sources).toHaveLength(2)
  })

  it('undoes an automatic memory only while its window is open', async () => {
    const person = await world.person()
    const [early = '', late = ''] = await world.remember(slice, person, ['likes mango', 'likes papaya'])
    world.clock.advance({ days: 6.9 })
    expect(await slice.memories.undo(person.owner_id, early)).toMatchObject({ state: 'undone', text: 'likes mango', undo_until: null })
    world.clock.advance({ days: 0.2 })
    expect(await slice.memories.get(person.owner_id, late)).toMatchObject({ undo_until: null })
    await expect(slice.memories.undo(person.owner_id, late)).rejects.toMatchObject({ code: 'wrong_state' })
    expect((await slice.memories.get(person.owner_id, early)).text).toBeNull()
    await slice.upkeep.eraseExpired()
    expect(await slice.memories.get(person.owner_id, early)).toMatchObject({ state: 'deleted', text: null })
    expect((await world.events(person)).at(-1)).toMatchObject({ type: 'memory.deleted', payload: { cause: 'undo_window_closed' } })
  })

  it('answers 404 for another owner’s memory and changes nothing (R7)', async () => {
    const [person, other] = [await world.person(), await world.person()]
    const [id = ''] = await world.remember(slice, person, [{ content: 'The user is a nurse', type: 'fact' }])
    const missing = { code: 'not_found' }
    for (const call of [
      () => slice.memories.get(other.owner_id, id),
      () => slice.memories.confirm(other.owner_id, id, {}),
      () => slice.memories.reject(other.owner_id, id),
      () => slice.memories.undo(other.owner_id, id),
      () => slice.memories.correct(other.owner_id, id, { text: 'mine now', version: 1 }),
      () => slice.memories.delete(other.owner_id, id),
      () => slice.memories.search(other.owner_id, { character_id: person.character_id, query: 'nurse', limit: 5 }),
      () =>
        slice.memories.search(other.owner_id, { character_id: other.character_id, realm_id: person.realm_id, query: 'nurse', limit: 5 }),
    ]) {
      await expect(call()).rejects.toMatchObject(missing)
    }
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({ state: 'proposed', version: 1 })
    expect(await world.memoryIds(other)).toEqual([])
  })

  it('deletes all of one owner’s character and nothing of another’s; an empty filter is refused (R8)', async () => {
    const [person, other] = [await world.person(), await world.person()]
    await world.remember(slice, person, ['likes plums', 'likes pears', { content: 'The user is a nurse', type: 'fact' }])
    await world.remember(slice, other, ['likes plums', 'likes pears'])
    await slice.upkeep.characterDeleted(person.owner_id, person.character_id)
    await expect(slice.upkeep.characterDeleted('', '')).rejects.toMatchObject({ code: 'validation_failed' })
    await slice.upkeep.characterDeleted(person.owner_id, other.character_id)
    expect(await world.count('memories', `owner_id = $1::uuid AND state = 'deleted'`, [person.owner_id])).toBe(3)
    expect(await recalled(person, 'plums pears')).toEqual([])
    expect((await recalled(other, 'plums pears')).sort()).toEqual(['likes pears', 'likes plums'])
    expect(await world.count('memory_keys', 'owner_id = $1::uuid', [person.owner_id])).toBe(0)
  })

  it('leaves no trace of a deleted memory in any derived index, only the proof of the act (R11)', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, ['The user collects zeppelin stamps'])
    const runId = await world.run(person)
    const { auditId } = await slice.recalls.recall({ ...person, queries: [{ text: 'zeppelin', weight: 1 }], runId })
    await slice.memories.delete(person.owner_id, id)
    await slice.memories.delete(person.owner_id, id)
    expect(await recalled(person, 'zeppelin stamps')).toEqual([])
    expect(
      (await slice.recaller.recall({ ...allOf(person), ...(await vectorOf(slice, 'zeppelin stamps')), tokens: [], weights: [] }))
        .candidates,
    ).toEqual([])
    const versions = 'version_id IN (SELECT id FROM memory_versions WHERE memory_id = $1::uuid)'
    expect([await world.count('memory_terms', versions, [id]), await world.count('memory_vectors', versions, [id])]).toEqual([0, 0])
    expect(await world.count('memory_term_counts', 'character_id = $1::uuid', [person.character_id])).toBe(0)
    expect(await world.count('contents', `owner_id = $1::uuid AND body = 'The user collects zeppelin stamps'`, [person.owner_id])).toBe(1) // the message
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({
      state: 'deleted',
      text: null,
      versions: [{ text: null }],
      recalled_in: [{ run_id: runId }],
    })
    expect((await slice.recalls.audit(person.owner_id, auditId))?.hits).toMatchObject([{ memory_id: id, text: null }])
    expect((await world.events(person)).filter((event) => event.type === 'memory.deleted')).toHaveLength(1)
  })

  it('takes index entries away whoever erases the text', async () => {
    const person = await world.person()
    await world.remember(slice, person, ['The user collects zeppelin stamps'])
    const [row] = await slice.store.list(person.owner_id, { limit: 1 }, world.clock.now())
    await slice.deps.contents.erase({ ids: [row?.content_id ?? ''], cause: 'test' })
    expect(await world.count('memory_terms', 'owner_id = $1::uuid', [person.owner_id])).toBe(0)
    expect(await world.count('memory_vectors', 'owner_id = $1::uuid', [person.owner_id])).toBe(0)
    await slice.index.putTerms({ versionId: row?.current_version_id ?? '', terms: { counts: new Map([['zeppelin', 1]]), length: 1 } })
    expect(await world.count('memory_terms', 'owner_id = $1::uuid', [person.owner_id])).toBe(0)
  })

  it('tombstones what rested on deleted messages alone and flags the rest', async () => {
    const person = await world.person()
    const talk = await world.talk(person, [
      { role: 'user', text: 'I like figs.' },
      { role: 'user', text: 'And dates.' },
      { role: 'character', text: 'Sweet.' },
    ])
    const [figs = '', dates = ''] = talk.nodeIds
    slice.answer(() =>
      proposed(
        figs,
        { content: 'likes figs' },
        { content: 'likes dates', source_message_ids: [dates] },
        { content: 'likes figs and dates', source_message_ids: [figs, dates] },
      ),
    )
    await slice.extraction.extract(await world.canonize(talk))
    await world.database.run(async () => {
      await world.deleteNode(figs)
      await slice.upkeep.nodesDeleted(person.owner_id, [figs])
    })
    const { items } = await slice.memories.list(person.owner_id, { limit: 10 })
    expect(items.map(({ text, state, flagged }) => ({ text, state, flagged }))).toEqual([
      { text: 'likes figs and dates', state: 'live', flagged: 'source_deleted' },
      { text: 'likes dates', state: 'live', flagged: null },
      { text: null, state: 'deleted', flagged: null },
    ])
    expect(items[0]?.sources.map((source) => source.text)).toEqual([null, 'And dates.'])
    expect(await slice.memories.correct(person.owner_id, items[0]?.id ?? '', { text: 'likes dates and figs', version: 1 })).toMatchObject({
      flagged: null,
    })
  })

  it('flags what only a withdrawn canonization vouched for, and removes nothing (M4)', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, ['likes figs'])
    const [source] = await slice.store.sources(person.owner_id, [
      (await slice.store.find(person.owner_id, id, world.clock.now()))?.current_version_id ?? '',
    ])
    const canonizationId = source?.canonization_id ?? ''
    await world.database.run(async () => {
      await world.withdraw(canonizationId)
      await slice.upkeep.canonWithdrawn(person.owner_id, canonizationId)
    })
    expect(await slice.memories.get(person.owner_id, id)).toMatchObject({ state: 'live', flagged: 'canon_withdrawn' })
    expect(await recalled(person, 'figs')).toEqual(['likes figs'])
  })

  it('pages through memories and refuses a cursor that is none', async () => {
    const person = await world.person()
    await world.remember(slice, person, ['likes figs', 'likes dates', 'likes plums'])
    const first = await slice.memories.list(person.owner_id, { limit: 2 })
    const second = await slice.memories.list(person.owner_id, { limit: 2, cursor: first.next_cursor ?? '' })
    expect([...first.items, ...second.items].map((item) => item.text)).toEqual(['likes plums', 'likes dates', 'likes figs'])
    expect(second.next_cursor).toBeNull()
    await expect(slice.memories.list(person.owner_id, { limit: 2, cursor: 'x' })).rejects.toMatchObject({ code: 'validation_failed' })
  })

  describe('direct SQL', () => {
    let person: Person
    let heavy: string
    let explicit: string
    beforeAll(async () => {
      person = await world.person()
      ;[heavy = '', explicit = ''] = await world.remember(slice, person, [{ content: 'The user is a nurse', type: 'fact' }, 'likes figs'])
    })
    const sql = (text: string, params: readonly string[]) => world.database.execute(text, params)

    it.each([
      ['a heavy memory live without its owner', `UPDATE memories SET state = 'live' WHERE id = $1::uuid`, 'waits for its owner'],
      ['a heavy memory made harmless', `UPDATE memories SET level = 'explicit', type = 'preference' WHERE id = $1::uuid`, 'stays heavy'],
      [
        'a memory moved to another realm',
        `UPDATE memories SET realm_id = (SELECT id FROM realms r WHERE r.owner_id = memories.owner_id AND r.kind = 'fiction') WHERE id = $1::uuid`,
        'keeps its identity',
      ],
      ['a memory removed', 'DELETE FROM memories WHERE id = $1::uuid', 'cannot be removed'],
      ['a version rewritten', 'UPDATE memory_versions SET version = 9 WHERE memory_id = $1::uuid', 'append-only'],
      [
        'a source rewritten',
        'DELETE FROM memory_sources WHERE version_id IN (SELECT id FROM memory_versions WHERE memory_id = $1::uuid)',
        'append-only',
      ],
    ])('refuses %s', async (_what, statement, message) => {
      await expect(sql(statement, [heavy])).rejects.toEqual(refusedBy(message))
    })

    it('refuses a sensitive or listed memory that takes effect by itself', async () => {
      await expect(
        sql(
          `INSERT INTO memories (id, owner_id, character_id, realm_id, level, state, type, origin, priority, confidence, sensitive, current_version_id, text_hash, created_at, updated_at)
           SELECT gen_random_uuid(), owner_id, character_id, realm_id, level, 'live', type, origin, 0, 0, sensitive, current_version_id, sha256('x'), now(), now() FROM memories WHERE id = $1::uuid`,
          [heavy],
        ),
      ).rejects.toEqual(refusedBy('does not begin as live'))
      await expect(sql(`UPDATE memories SET sensitive = true WHERE id = $1::uuid`, [explicit])).rejects.toEqual(
        refusedBy('explicit_is_harmless'),
      )
      await expect(sql(`UPDATE memories SET type = 'fact' WHERE id = $1::uuid`, [explicit])).rejects.toEqual(
        refusedBy('explicit_is_harmless'),
      )
    })

    it('refuses states that do not follow each other', async () => {
      await expect(sql(`UPDATE memories SET state = 'rejected' WHERE id = $1::uuid`, [explicit])).rejects.toThrow()
      await expect(sql(`UPDATE memories SET state = 'undone' WHERE id = $1::uuid`, [heavy])).rejects.toEqual(refusedBy('does not go from'))
    })

    it('refuses a deletion that leaves the text, and a second live version', async () => {
      const gone = `UPDATE memories SET state = 'deleted', text_hash = NULL, undo_until = NULL WHERE id = $1::uuid`
      await expect(sql(gone, [explicit])).rejects.toEqual(refusedBy('its text remains'))
      await expect(sql('UPDATE memories SET current_version_id = $1::uuid WHERE id = $1::uuid', [explicit])).rejects.toThrow()
    })

    it('refuses consent by anybody but the owner', async () => {
      const other = await world.person()
      await expect(
        sql(
          `INSERT INTO confirmations (id, owner_id, character_id, realm_id, memory_id, version_id, decision, decided_by, decided_at)
           SELECT gen_random_uuid(), owner_id, character_id, realm_id, id, current_version_id, 'confirm', $2::uuid, now() FROM memories WHERE id = $1::uuid`,
          [heavy, other.owner_id],
        ),
      ).rejects.toEqual(refusedBy('owner_decides'))
    })

    it('refuses a memory in another owner’s realm or of another owner’s character', async () => {
      const other = await world.person()
      const insert = (characterId: string, realmId: string) =>
        sql(
          `INSERT INTO memories (id, owner_id, character_id, realm_id, level, state, type, origin, priority, confidence, sensitive, current_version_id, text_hash, created_at, updated_at)
           SELECT gen_random_uuid(), owner_id, $2::uuid, $3::uuid, level, state, type, origin, 0, 0, sensitive, current_version_id, sha256('x'), now(), now() FROM memories WHERE id = $1::uuid`,
          [explicit, characterId, realmId],
        )
      await expect(insert(other.character_id, person.realm_id)).rejects.toThrow()
      await expect(insert(person.character_id, other.realm_id)).rejects.toThrow()
    })

    it('refuses a source off the canonical path, or no source at all (M3)', async () => {
      const talk = await world.talk(person, [{ role: 'user', text: 'I like quinces.' }])
      const [question = ''] = talk.nodeIds
      const aside = await world.say(talk, { role: 'character', text: 'Aside.' }, question)
      const answer = await world.say(talk, { role: 'character', text: 'Noted.' }, question)
      const canonizationId = await world.canonize(talk, { to: answer })
      const cite = (nodeId: string) =>
        sql(
          `INSERT INTO memory_sources (version_id, owner_id, character_id, realm_id, tree_id, node_id, canonization_id)
           SELECT current_version_id, owner_id, character_id, realm_id, $2::uuid, $3::uuid, $4::uuid FROM memories WHERE id = $1::uuid`,
          [explicit, talk.treeId, nodeId, canonizationId],
        )
      await expect(cite(aside)).rejects.toEqual(refusedBy('is not canonical'))
      await expect(cite(talk.rootId)).rejects.toEqual(refusedBy('is not canonical'))
      expect(await cite(question)).toBe(1)
      const [memory] = await slice.store.findAll(person.owner_id, [explicit], world.clock.now())
      await expect(
        sql(
          `INSERT INTO memory_versions (id, owner_id, character_id, realm_id, memory_id, version, content_id, trust, event_at, cause, supersedes_version_id, created_at)
           SELECT gen_random_uuid(), owner_id, character_id, realm_id, memory_id, 2, content_id, trust, event_at, 'update', id, now() FROM memory_versions WHERE id = $1::uuid`,
          [memory?.current_version_id ?? ''],
        ),
      ).rejects.toEqual(refusedBy('has no source'))
    })

    it('refuses an index entry of what is not to be found', async () => {
      const [memory] = await slice.store.findAll(person.owner_id, [heavy], world.clock.now())
      await expect(
        sql(
          `INSERT INTO memory_terms (version_id, token, owner_id, character_id, realm_id, live, level, frequency, length)
           SELECT id, 'planted', owner_id, character_id, realm_id, true, 'explicit', 1, 1 FROM memory_versions WHERE id = $1::uuid`,
          [memory?.current_version_id ?? ''],
        ),
      ).rejects.toEqual(refusedBy('not to be found by search'))
    })
  })
})

function allOf(person: Person) {
  return {
    ...person,
    levels: ['explicit', 'heavy', 'trace'] as const,
    includeProposed: true,
    includeReal: true,
    now: new Date('2026-06-01T12:00:00.000Z'),
    rankConstant: 60,
    textWeight: 1,
    vectorWeight: 1,
    depth: 50,
    vectorFloor: -1,
    exactUpTo: 1_000,
    halfLifeDays: 120,
    limit: 50,
  }
}

async function vectorOf(slice: Slice, text: string) {
  const vector = await slice.embeddings.query([{ text, weight: 1 }], askedByNobody)
  return { vector: vector.leg === 'used' ? vector : null }
}
