/** What an undo and a correction bring back, and what they leave gone, where the same words stand elsewhere too (case R6). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MemoryWorld, proposed, requestOf } from '../support/memory-world.ts'
import type { Person, Slice } from '../support/memory-world.ts'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

const tea = 'The user drinks green tea at breakfast'
const coffee = 'The user drinks black coffee at breakfast'
const nuts = 'The user is allergic to nuts'
const running = 'The user goes running on Sundays in the park'

describe.each(portTiers)('the same words in two memories on the %s tier', (name) => {
  let tier: PortTier
  let world: MemoryWorld
  let slice: Slice
  beforeAll(async () => {
    tier = await openPortTier(name)
    world = new MemoryWorld(tier)
    slice = await world.slice()
  })
  afterAll(() => tier.close())

  /** The model puts what somebody says in the place of the first of its pool. */
  async function update(person: Person, content: string): Promise<void> {
    const talk = await world.talk(person, [
      { role: 'user', text: content },
      { role: 'character', text: 'Noted.' },
    ])
    slice.answer((question) => {
      if (question.purpose !== 'dedupe') return proposed(talk.nodeIds[0] ?? '', { content })
      const ids = requestOf(question).pool.map((memory) => memory.id)
      return { decisions: [{ index: 0, action: 'update', target_ids: ids.slice(0, 1) }] }
    })
    await slice.extraction.extract(await world.canonize(talk))
  }
  /** A memory that was `tea`, and is `coffee` by itself. */
  async function updated(): Promise<{ person: Person; id: string }> {
    const person = await world.person()
    const [id = ''] = await world.remember(slice, person, [tea])
    await update(person, coffee)
    return { person, id }
  }
  async function texts(person: Person, state: 'live' | 'proposed'): Promise<(string | null)[]> {
    const { items } = await slice.memories.list(person.owner_id, { limit: 20, state })
    return items.map(({ text }) => text).toSorted()
  }
  const recalled = async (person: Person, query: string) => {
    const { items } = await slice.recalls.recall({ ...person, queries: [{ text: query, weight: 1 }], runId: null })
    return items.map((item) => item.text)
  }
  async function added(person: Person, what: Parameters<MemoryWorld['remember']>[2]): Promise<string> {
    const before = new Set((await slice.memories.list(person.owner_id, { limit: 50 })).items.map(({ id }) => id))
    await world.remember(slice, person, what)
    const { items } = await slice.memories.list(person.owner_id, { limit: 50 })
    return items.find(({ id }) => !before.has(id))?.id ?? ''
  }

  it('an undo whose old text was learned anew leaves it to the memory that says it', async () => {
    const { person, id } = await updated()
    await added(person, [tea])
    expect(await slice.memories.undo(person.owner_id, id)).toMatchObject({ state: 'merged', text: tea })
    expect(await texts(person, 'live')).toEqual([tea])
    expect(await recalled(person, 'green tea breakfast')).toEqual([tea])
    // What was undone stays gone.
    await added(person, [coffee])
    expect(await texts(person, 'live')).toEqual([tea])
  })

  it('a correction to the words of a proposal is the yes to it, and both are found', async () => {
    const person = await world.person()
    const live = await added(person, [tea])
    await added(person, [{ content: nuts, type: 'fact' }])
    expect(await texts(person, 'proposed')).toEqual([nuts])
    await slice.memories.correct(person.owner_id, live, { text: nuts, version: 1 })
    expect([await texts(person, 'live'), await texts(person, 'proposed')]).toEqual([[nuts], []])
    expect(await recalled(person, 'allergic nuts')).toEqual([nuts])
  })

  it('a proposal that was confirmed in the words of another memory keeps its yes when that one’s are undone', async () => {
    const { person, id } = await updated()
    const proposal = await added(person, [{ content: nuts, type: 'fact' }])
    expect(await slice.memories.confirm(person.owner_id, proposal, { text: coffee })).toMatchObject({ state: 'merged' })
    expect(await slice.memories.undo(person.owner_id, id)).toMatchObject({ state: 'live', text: tea })
    expect(await texts(person, 'live')).toEqual([coffee, tea])
    expect(await texts(person, 'proposed')).toEqual([])
  })

  it('what the owner corrected away does not come back by an undo elsewhere', async () => {
    const { person, id } = await updated()
    const other = await added(person, [running])
    await slice.memories.correct(person.owner_id, other, { text: coffee, version: 1 })
    expect(await texts(person, 'live')).toEqual([coffee])
    await slice.memories.undo(person.owner_id, id)
    // The undo is about what came by itself; the owner's own words stand.
    expect(await texts(person, 'live')).toEqual([coffee, tea])
    expect(await recalled(person, 'running Sundays park')).not.toContain(running)
  })
})
