import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ModelUnreachableError } from '#domains/memory/extraction-asker'
import { MemoryWorld, proposed, requestOf, storeAll } from '../support/memory-world.ts'
import type { Slice } from '../support/memory-world.ts'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

describe.each(portTiers)('extraction on the %s tier', (name) => {
  let tier: PortTier
  let world: MemoryWorld
  let slice: Slice
  beforeAll(async () => {
    tier = await openPortTier(name)
    world = new MemoryWorld(tier)
    slice = await world.slice()
  })
  afterAll(() => tier.close())

  const teaTalk = async () => {
    const person = await world.person()
    const talk = await world.talk(person, [
      { role: 'user', text: 'I like jasmine tea.' },
      { role: 'character', text: 'Then I will brew some.' },
    ])
    return { person, talk, user: talk.nodeIds[0] ?? '', canonizationId: await world.canonize(talk) }
  }

  it('stores what is harmless at once and lets the rest wait, each with its sources and events', async () => {
    const { person, user, canonizationId } = await teaTalk()
    slice.answer(() =>
      proposed(
        user,
        { content: 'The user likes jasmine tea.' },
        { content: 'The user is allergic to nuts.', type: 'fact', sensitive: true },
      ),
    )
    expect(await slice.extraction.extract(canonizationId)).toEqual({ outcome: 'finished', code: null, stored: 2, dropped: 0 })
    const { items } = await slice.memories.list(person.owner_id, { limit: 10, character_id: person.character_id })
    expect(items.map(({ text, level, state, sensitive, origin }) => ({ text, level, state, sensitive, origin }))).toEqual([
      { text: 'The user is allergic to nuts.', level: 'heavy', state: 'proposed', sensitive: true, origin: 'user_explicit' },
      { text: 'The user likes jasmine tea.', level: 'explicit', state: 'live', sensitive: false, origin: 'user_explicit' },
    ])
    expect(items.map((item) => item.sources.map((source) => source.text))).toEqual([['I like jasmine tea.'], ['I like jasmine tea.']])
    expect(items[1]?.undo_until).toBe('2026-06-08T12:00:00.000Z')
    expect((await world.events(person)).map((event) => event.type)).toEqual(['memory.proposed', 'memory.proposed', 'extraction.finished'])
  })

  it('stores once, however often the job runs (idempotent per canonization)', async () => {
    const { person, user, canonizationId } = await teaTalk()
    slice.answer(() => proposed(user))
    const ends: string[] = []
    const onEnd = async (end: { outcome: string }) => void ends.push(end.outcome)
    await slice.extraction.extract(canonizationId, { onEnd })
    const asked = slice.questions.length
    await slice.extraction.extract(canonizationId, { onEnd })
    expect(slice.questions).toHaveLength(asked)
    expect(ends).toEqual(['finished', 'finished'])
    expect(await world.memoryIds(person)).toHaveLength(1)
  })

  it('goes on after a crash between any two steps, with nothing doubled', async () => {
    const { person, user, canonizationId } = await teaTalk()
    slice.answer(() => proposed(user, { content: 'likes tea' }, { content: 'likes rain' }))
    // The transaction that stores the batch fails at its end: after the memories, before the job is closed.
    await expect(slice.extraction.extract(canonizationId, { onEnd: () => Promise.reject(new Error('killed')) })).rejects.toThrow('killed')
    expect(await world.memoryIds(person)).toEqual([])
    expect(await world.events(person)).toEqual([])
    slice.answer(() => {
      throw new Error('connection lost')
    })
    await expect(slice.extraction.extract(canonizationId)).rejects.toThrow('could not be asked')
    slice.answer(() => proposed(user, { content: 'likes tea' }, { content: 'likes rain' }))
    await slice.extraction.extract(canonizationId)
    expect(await world.memoryIds(person)).toHaveLength(2)
  })

  it('leaves one row of two concurrent writes, twenty times, and another owner their own (R1)', async () => {
    const [first, other] = [await world.person(), await world.person()]
    const second = await world.slice({ database: tier.replica().database })
    for (let round = 0; round < 20; round++) {
      const content = `likes tea of kind ${round}`
      const extractions = []
      for (const by of [slice, second]) {
        const talk = await world.talk(first, [
          { role: 'user', text: content },
          { role: 'character', text: 'Noted.' },
        ])
        const canonizationId = await world.canonize(talk)
        by.answer((question) => (question.purpose === 'dedupe' ? storeAll(question) : proposed(talk.nodeIds[0] ?? '', { content })))
        extractions.push(by.extraction.extract(canonizationId))
      }
      await Promise.all(extractions)
    }
    await world.remember(slice, other, ['likes tea of kind 0'])
    const mine = await slice.memories.list(first.owner_id, { limit: 100 })
    expect(mine.items).toHaveLength(20)
    expect(await world.count('memories', 'owner_id = $1::uuid AND mentions = 2', [first.owner_id])).toBe(20)
    expect((await slice.memories.list(other.owner_id, { limit: 100 })).items).toHaveLength(1)
  })

  it('stores the proposals of one of two jobs that extract the same canon at once', async () => {
    const { person, user, canonizationId } = await teaTalk()
    const second = await world.slice({ database: tier.replica().database })
    let waiting = 0
    let release: () => void = () => undefined
    const both = new Promise<void>((resolve) => {
      release = resolve
    })
    // Each has its answer only when both have asked, and no two answers are alike.
    const answerWith = (content: string) => async () => {
      if (++waiting === 2) release()
      await both
      return proposed(user, { content })
    }
    slice.answer(answerWith('likes tea'))
    second.answer(answerWith('enjoys a kettle'))
    const ends = await Promise.all([slice.extraction.extract(canonizationId), second.extraction.extract(canonizationId)])
    expect(ends).toEqual([ends[0], ends[0]])
    expect(await world.memoryIds(person)).toHaveLength(1)
    expect((await world.events(person)).filter((event) => event.type === 'extraction.finished')).toHaveLength(1)
  })

  it('shows only what a canonization adds to the one before it', async () => {
    const person = await world.person()
    const talk = await world.talk(person, [
      { role: 'user', text: 'I like tea.' },
      { role: 'character', text: 'Noted.' },
      { role: 'user', text: 'I like rain.' },
      { role: 'character', text: 'So do I.' },
    ])
    const [tea = '', first = '', rain = '', last = ''] = talk.nodeIds
    await world.canonize(talk, { to: first })
    slice.answer(() => proposed(rain, { content: 'likes rain' }, { content: 'likes tea', source_message_ids: [tea] }))
    await slice.extraction.extract(await world.canonize(talk, { from: first, to: last }))
    const shown = JSON.parse(slice.questions.at(-1)?.messages[1]?.content ?? '{}') as { messages: { id: string }[] }
    expect(shown.messages.map((message) => message.id)).toEqual([rain, last])
    expect((await world.events(person)).map((event) => event.payload.reason).filter(Boolean)).toEqual(['outside_canon'])
  })

  it('counts three derivations on each path: new, duplicate, replaced (R2)', async () => {
    const person = await world.person()
    await world.remember(slice, person, ['likes oolong', 'Likes oolong.', 'likes  oolong'])
    const derive = async (content: string, decision: (pool: { id: string }[]) => unknown) => {
      const talk = await world.talk(person, [
        { role: 'user', text: content },
        { role: 'character', text: 'Noted.' },
      ])
      slice.answer((question) =>
        question.purpose === 'dedupe' ? decision(requestOf(question).pool) : proposed(talk.nodeIds[0] ?? '', { content }),
      )
      await slice.extraction.extract(await world.canonize(talk))
    }
    const skip = (pool: { id: string }[]) => ({ decisions: [{ index: 0, action: 'skip', target_ids: [pool[0]?.id] }] })
    const update = (pool: { id: string }[]) => ({ decisions: [{ index: 0, action: 'update', target_ids: [pool[0]?.id] }] })
    const mentions = () =>
      world.database.query<{ mentions: number }>(`SELECT mentions FROM memories WHERE owner_id = $1::uuid AND state = 'live' ORDER BY id`, [
        person.owner_id,
      ])
    expect(await mentions()).toEqual([{ mentions: 3 }])
    await derive('enjoys a cup of oolong', skip)
    await derive('drinks oolong every day', update)
    expect(await mentions()).toEqual([{ mentions: 5 }])
    const reinforced = (await world.events(person)).filter((event) => event.type === 'memory.reinforced')
    expect(reinforced.map((event) => event.payload.count)).toEqual([2, 3, 4])
  })

  it('takes nothing that rests on no real message, and records each refusal (R3, R14, R20)', async () => {
    const person = await world.person()
    const talk = await world.talk(person, [{ role: 'user', text: 'I like walking by the river.' }])
    const [question = ''] = talk.nodeIds
    const sibling = await world.say(talk, { role: 'character', text: 'The abandoned answer: the user hates rain.' }, question)
    const answer = await world.say(talk, { role: 'character', text: 'So do I.' }, question)
    const foreign = await world.talk(await world.person(), [{ role: 'user', text: 'Mine.' }])
    slice.answer(() =>
      proposed(
        question,
        { content: 'The user hates rain.', source_message_ids: [sibling] },
        { content: 'The user owns a boat.', source_message_ids: [foreign.nodeIds[0] ?? ''] },
        { content: 'The user has a cat.', source_message_ids: [] },
        { content: 'Small talk, greetings, moods of the moment and one-off requests are noise.' },
        { content: 'my key is sk-abc123def456', type: 'fact' },
        { content: 'sk-abc123def456', type: 'fact' },
        { content: 'The user likes walking by the river.' },
      ),
    )
    const canonizationId = await world.canonize(talk, { to: answer })
    expect(await slice.extraction.extract(canonizationId)).toMatchObject({ stored: 2, dropped: 5 })
    expect((await world.events(person)).flatMap((event) => (event.type === 'memory.dropped' ? [event.payload.reason] : []))).toEqual([
      'outside_canon',
      'outside_canon',
      'no_source',
      'echo',
      'empty_after_scrub',
    ])
    const { items } = await slice.memories.list(person.owner_id, { limit: 10 })
    expect(items.map((item) => item.text)).toEqual(['The user likes walking by the river.', 'my key is [masked:key]'])
    // Only people's messages of the canonical path were shown.
    const shown = JSON.parse(slice.questions.at(-1)?.messages[1]?.content ?? '{}') as { messages: { id: string }[] }
    expect(shown.messages.map((message) => message.id)).toEqual([question, answer])
  })

  it('does not take back in what the character was shown and merely repeats', async () => {
    const person = await world.person()
    await world.remember(slice, person, ['The user likes long walks by the river'])
    const talk = await world.talk(person, [{ role: 'user', text: 'What do you know of me?' }])
    const [questionId = ''] = talk.nodeIds
    const runId = await world.run(person, { treeId: talk.treeId, questionId })
    await slice.recalls.recall({ ...person, queries: [{ text: 'river walks', weight: 1 }], runId })
    talk.nodeIds.push(await world.say(talk, { role: 'character', text: 'You like long walks by the river.', runId }, questionId))
    slice.answer(() => proposed(runId, { content: 'The user likes long walks by the river' }))
    await slice.extraction.extract(await world.canonize(talk))
    expect((await world.events(person)).at(-2)).toMatchObject({ type: 'memory.dropped', payload: { reason: 'echo' } })
    expect(await world.count('memories', 'owner_id = $1::uuid AND mentions = 1', [person.owner_id])).toBe(1)
  })

  it('keeps two things that share a sign apart (R4)', async () => {
    const person = await world.person()
    expect(await world.remember(slice, person, [{ content: '周游世界', type: 'plan' }, '在周末吃夜宵'])).toHaveLength(2)
    expect((await slice.memories.list(person.owner_id, { state: 'live', limit: 10 })).items).toHaveLength(2)
  })

  it('leaves the fields that an update does not name as they were (R5)', async () => {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, [{ content: 'The user plans a trip to Kyoto', type: 'plan', priority: 0.8 }])
    const talk = await world.talk(person, [
      { role: 'user', text: 'Osaka instead.' },
      { role: 'character', text: 'Noted.' },
    ])
    slice.answer((question) =>
      question.purpose === 'dedupe'
        ? { decisions: [{ index: 0, action: 'update', target_ids: [id] }] }
        : proposed(talk.nodeIds[0] ?? '', { content: 'The user plans a trip to Osaka', type: 'plan', priority: 0.2 }),
    )
    await slice.extraction.extract(await world.canonize(talk))
    const memory = await slice.memories.get(person.owner_id, id)
    expect(memory).toMatchObject({ text: 'The user plans a trip to Osaka', type: 'plan', priority: 0.8, version: 2 })
    expect(memory.sources).toHaveLength(2)
  })

  it('refuses a decision about a memory that was not in the pool, and gives up visibly after one retry (R7)', async () => {
    const person = await world.person()
    const [mine = ''] = await world.remember(slice, person, ['likes green tea'])
    const [foreign] = await world.remember(slice, await world.person(), ['likes green tea'])
    const talk = await world.talk(person, [
      { role: 'user', text: 'Green tea with milk.' },
      { role: 'character', text: 'Noted.' },
    ])
    slice.answer((question) =>
      question.purpose === 'dedupe'
        ? { decisions: [{ index: 0, action: 'update', target_ids: [foreign] }] }
        : proposed(talk.nodeIds[0] ?? '', { content: 'likes green tea with milk' }),
    )
    expect(await slice.extraction.extract(await world.canonize(talk))).toMatchObject({
      outcome: 'given_up',
      code: 'dedupe_invalid',
      stored: 0,
    })
    expect(slice.questions.at(-1)?.messages.at(-1)?.content).toContain('target_ids holds an id that is not in the pool')
    expect(await world.memoryIds(person)).toEqual([mine])
    expect((await world.events(person)).at(-1)).toMatchObject({
      type: 'extraction.given_up',
      payload: { code: 'dedupe_invalid', tries: 3 },
    })
  })

  it('tries a bad answer once more with what is wrong, then takes what is good of it', async () => {
    const { person, user, canonizationId } = await teaTalk()
    const bad = { proposals: [{ content: 'likes tea' }, ...proposed(user, { content: 'likes rain' }).proposals] }
    slice.answer(() => bad)
    const asked = slice.questions.length
    expect(await slice.extraction.extract(canonizationId)).toMatchObject({ outcome: 'finished', stored: 1, dropped: 1 })
    expect(slice.questions.length - asked).toBe(2)
    expect(slice.questions.at(-1)?.messages.at(-1)?.content).toContain('proposals[0].type')
    expect((await world.events(person)).map((event) => event.payload.reason).filter(Boolean)).toEqual(['invalid'])
    const other = await teaTalk()
    slice.answer(() => 'I would rather chat.')
    expect(await slice.extraction.extract(other.canonizationId)).toMatchObject({ outcome: 'given_up', code: 'extraction_invalid' })
  })

  it('writes nothing where the talk was deleted or the canon withdrawn meanwhile (R12)', async () => {
    const gone = await teaTalk()
    await world.database.execute('UPDATE trees SET deleted_at = now() WHERE id = $1::uuid', [gone.talk.treeId])
    slice.answer(() => proposed(gone.user))
    expect(await slice.extraction.extract(gone.canonizationId)).toMatchObject({ outcome: 'given_up', code: 'nothing_live' })
    const withdrawn = await teaTalk()
    slice.answer(async () => {
      await world.withdraw(withdrawn.canonizationId) // while the model thinks
      return proposed(withdrawn.user)
    })
    expect(await slice.extraction.extract(withdrawn.canonizationId)).toMatchObject({ outcome: 'given_up', code: 'nothing_live' })
    expect([...(await world.memoryIds(gone.person)), ...(await world.memoryIds(withdrawn.person))]).toEqual([])
  })

  it('gives up on a model that cannot be reached only at the last attempt', async () => {
    const { canonizationId } = await teaTalk()
    slice.answer(() => {
      throw new Error('refused')
    })
    await expect(slice.extraction.extract(canonizationId)).rejects.toThrow()
    // A model that is away may come back: there are more tries than of what fails by itself.
    await expect(slice.extraction.extract(canonizationId, { lastAttempt: true })).rejects.toThrow(ModelUnreachableError)
    expect(await slice.extraction.extract(canonizationId, { lastAttempt: true, lastHope: true })).toMatchObject({
      outcome: 'given_up',
      code: 'model_unavailable',
    })
  })

  it('ends with the last attempt whatever went wrong, and then says what nobody expected', async () => {
    const { person, user, canonizationId } = await teaTalk()
    slice.answer(() => proposed(user))
    const ends: unknown[] = []
    const onEnd = async (end: { outcome: string; code: string | null }) => {
      ends.push([end.outcome, end.code])
      if (end.outcome === 'finished') throw new RangeError('out of shelves')
    }
    await expect(slice.extraction.extract(canonizationId, { onEnd, lastAttempt: true })).rejects.toThrow('out of shelves')
    expect(ends).toEqual([
      ['finished', null],
      ['given_up', 'unexpected_error'],
    ])
    expect(await world.memoryIds(person)).toEqual([])
    expect((await world.events(person)).map(({ type, payload }) => [type, payload.code])).toEqual([
      ['extraction.given_up', 'unexpected_error'],
    ])
  })

  it('gives nothing up because its process stops', async () => {
    const { person, user, canonizationId } = await teaTalk()
    const stopping = new AbortController()
    slice.answer(() => {
      stopping.abort()
      throw new Error('connection lost')
    })
    const options = { lastAttempt: true, signal: stopping.signal }
    await expect(slice.extraction.extract(canonizationId, options)).rejects.toThrow('could not be asked')
    expect(await world.events(person)).toEqual([])
    slice.answer(() => proposed(user))
    expect(await slice.extraction.extract(canonizationId, { lastAttempt: true })).toMatchObject({ outcome: 'finished', stored: 1 })
  })

  it('goes through a long range in batches and resumes behind the last stored one', async () => {
    const person = await world.person()
    const long = 'river '.repeat(900)
    const talk = await world.talk(person, [
      { role: 'user', text: `${long}first` },
      { role: 'character', text: 'One.' },
      { role: 'user', text: `${long}second` },
      { role: 'character', text: 'Two.' },
    ])
    const canonizationId = await world.canonize(talk)
    const seen: string[][] = []
    let calls = 0
    slice.answer((question) => {
      if (question.purpose === 'dedupe') return storeAll(question)
      const { messages } = JSON.parse(question.messages[1]?.content ?? '{}') as { messages: { id: string }[] }
      if (++calls === 2) throw new Error('killed')
      seen.push(messages.map((message) => message.id))
      return proposed(messages[0]?.id ?? '', { content: `likes river number ${calls}` })
    })
    await expect(slice.extraction.extract(canonizationId)).rejects.toThrow()
    await slice.extraction.extract(canonizationId)
    expect(seen).toEqual([talk.nodeIds.slice(0, 2), talk.nodeIds.slice(2)])
    expect(await world.memoryIds(person)).toHaveLength(2)
    expect((await world.events(person)).at(-1)).toMatchObject({
      type: 'extraction.finished',
      payload: { stored: 2, proposals: 2, dropped: 0 },
    })
  })

  it('does not bring back what the owner rejected or undid', async () => {
    const person = await world.person()
    const [proposal = '', automatic = ''] = await world.remember(slice, person, [
      { content: 'The user is a nurse', type: 'fact' },
      'likes oolong',
    ])
    await slice.memories.reject(person.owner_id, proposal)
    await slice.memories.undo(person.owner_id, automatic)
    expect(await world.remember(slice, person, [{ content: 'the user is a nurse.', type: 'fact' }, 'Likes oolong'])).toEqual([])
    expect((await world.events(person)).filter((event) => event.payload.reason === 'rejected_before')).toHaveLength(2)
  })

  it('carries the lowest trust of its sources, workspace at most', async () => {
    const person = await world.person()
    const talk = await world.talk(person, [
      { role: 'user', text: 'I like tea.' },
      { role: 'character', text: 'And rain.', trust: 'untrusted' },
    ])
    const [user = '', character = ''] = talk.nodeIds
    slice.answer(() => proposed(user, { content: 'likes tea' }, { content: 'likes rain', source_message_ids: [user, character] }))
    await slice.extraction.extract(await world.canonize(talk))
    const { items } = await slice.recalls.recall({ ...person, queries: [{ text: 'tea rain', weight: 1 }], runId: null })
    expect(items.map(({ text, trust }) => [text, trust]).sort()).toEqual([
      ['likes rain', 'untrusted'],
      ['likes tea', 'workspace'],
    ])
    expect(slice.questions.at(-1)?.trust).toBe('untrusted')
  })
})
