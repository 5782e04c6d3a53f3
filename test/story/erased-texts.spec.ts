import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { MemoryPage, RunAccepted, TreeView } from '#contracts'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import type { Database } from '#infra/prisma/database'
import type { z } from 'zod'
import { composeRecord } from '../../apps/bff/composition/compose-record.ts'
import { layFoundation } from '../../apps/bff/composition/foundation.ts'
import type { FakeRequest, FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { startFakeUpstream } from '../support/fake-upstream.ts'
import { proposed } from '../support/memory-world.ts'
import { closeWhole } from '../support/replays.ts'
import { standingTexts } from '../support/standing-texts.ts'
import { answer, askAndHear, call, eventually, follow, spoken } from '../support/story.ts'
import { openStore, startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'
import { calling, grant } from '../support/tool-calls.ts'

/*
 * Decisions 10 and 13, by content: words go all the way from a message to whatever runs and jobs store of it, something of that is deleted,
 * and the whole database is searched for them.
 */

// Each test walks turns, jobs and a task; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 240_000 })

/** Words of one test alone, Latin and Chinese; two signs of Chinese are also how the index of memories knows them. */
const pairs = ['鸢卣', '彧觥', '鼐麴', '龠彝', '罍甗', '瓞缶', '簋匜', '盉觯', '斝瓿']
let words: string[] = []
let said = ''
beforeEach(() => {
  const pair = pairs.shift() ?? ''
  words = [`qxvplum${pairs.length}z`, pair]
  said = words.join(' ')
})

let upstream: FakeUpstream
let system: TestSystem

type Body = {
  messages: { role: string; content: string | null }[]
  response_format?: { json_schema: { name: string } }
}

/** The model: it says the words wherever it is asked about them, and answers jobs badly at first. */
function answers(request: FakeRequest): FakeResponse {
  const { messages, response_format: format } = JSON.parse(request.bodyText) as Body
  const isSecondTry = messages.some(({ role }) => role === 'assistant')
  const job = format?.json_schema.name
  if (job === 'memory_extraction') {
    return answer(isSecondTry ? extracted(messages[1]?.content ?? '') : `I would say ${shown(messages)}.`)
  }
  if (job === 'memory_dedupe') {
    return answer(
      isSecondTry
        ? JSON.stringify({ decisions: [{ index: 0, action: 'store', target_ids: [] }] })
        : `They know of ${shown(messages)} already.`,
    )
  }
  if (job === 'verification') return answer('{"meets":true}')
  if (messages[0]?.content?.startsWith('You carry out a task') === true) return answer(`I bought ${said}.`)
  const question = messages.findLast(({ role, content }) => role === 'user' && content !== null)?.content ?? ''
  const results = messages.filter(({ role }) => role === 'tool').length
  if (question.includes('Which fruit')) return acting(results)
  if (question.includes('Say it again')) {
    return results === 0 ? calling([{ name: 'recall_original', arguments: JSON.stringify({ node_id: original }) }]) : answer('There.')
  }
  return answer(question.includes(said) ? `So you like ${said}.` : 'Noted.')
}

/** The words, for a model that was shown them. */
const shown = (messages: Body['messages']): string => (messages.some(({ content }) => content?.includes(said) === true) ? said : 'nothing')

/** The message that is told word for word. */
let original = ''

function acting(results: number): FakeResponse {
  if (results === 0) {
    return calling([
      { id: 'call_1', name: 'notes_write', arguments: JSON.stringify({ text: `They like ${said}.` }) },
      { id: 'call_2', name: 'recall', arguments: JSON.stringify({ query: `fruit ${said}` }) },
      { id: 'call_3', name: 'delegate', arguments: JSON.stringify({ instruction: `Buy ${said}.`, inputs: [`A list: ${said}`] }) },
    ])
  }
  if (results === 3) {
    return calling([
      { id: 'call_4', name: 'notes_read', arguments: '{"number":1}' },
      { id: 'call_5', name: 'notes_list', arguments: '{}' },
    ])
  }
  return answer('There.')
}

function extracted(shown: string): string {
  const { messages } = JSON.parse(shown) as { messages: { id: string; text: string; role: string }[] }
  const source = messages.find(({ role }) => role === 'user')
  const content = source?.text.includes(said) === true ? `The user likes fruit: ${said}.` : 'The user eats fruit every day.'
  return JSON.stringify(proposed(source?.id ?? '', { content }))
}

beforeAll(async () => {
  upstream = await startFakeUpstream({ answers })
  system = await startTestSystem({ model: upstream.baseUrl })
})
afterAll(async () => {
  // Whatever was deleted, the record is whole, and every run replays.
  await closeWhole({ system, close: () => system.close() })
  await upstream.close()
})

type Told = { characterId: string; tree: TreeView; first: RunAccepted; memoryId: string; otherId: string; runs: RunAccepted[] }

const memoriesOf = async (characterId: string) =>
  (await call<z.output<typeof MemoryPage>>(system, 'GET', `/v1/memories?character_id=${characterId}`)).items

const treeOf = (characterId: string): Promise<TreeView> =>
  call<TreeView>(system, 'POST', '/v1/trees', { character_id: characterId, zone: 'UTC' })

/** Makes an answer canonical and waits for the memory that comes of it. */
async function remembered(characterId: string, accepted: RunAccepted): Promise<string> {
  const before = new Set((await memoriesOf(characterId)).map(({ id }) => id))
  await call(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
  const made = await eventually(async () => (await memoriesOf(characterId)).find(({ id }) => !before.has(id)), 'a memory')
  expect(made.state).toBe('live')
  return made.id
}

/** The words go from a message to an answer, a memory, a quotation, a note, a search, a task and its result, and through all the jobs between. */
async function tellAll(): Promise<Told> {
  const card = { name: 'Mira', description: `A sailor who sells ${said}.` }
  const { id: characterId } = await call<{ id: string }>(system, 'POST', '/v1/characters', card)
  const book = { name: `Wares of ${said}`, entries: { 0: { uid: 0, key: ['fruit'], content: `They are called ${said}.` } } }
  await call(system, 'POST', `/v1/lorebooks/import?character_id=${characterId}`, JSON.stringify(book), {
    headers: { 'content-type': 'application/json' },
  })
  await grant(system, '/v1/grant')
  const tools = ['notes.write', 'notes.read', 'notes.list', 'recall', 'recall_original', 'delegate']
  await grant(system, `/v1/characters/${characterId}/grant`, { tools })
  const tree = await treeOf(characterId)
  await call(system, 'PATCH', `/v1/trees/${tree.id}`, { title: `About ${said}` })
  const told = await askAndHear(system, tree.id, `I like ${said}.`)
  expect(told.text).toContain(said)
  const first = told.accepted
  const memoryId = await remembered(characterId, first)
  original = first.question_id
  const again = await askAndHear(system, tree.id, 'Say it again.')

  const elsewhere = await treeOf(characterId)
  const plain = await askAndHear(system, elsewhere.id, 'Fruit is what I eat every day.')
  const otherId = await remembered(characterId, plain.accepted)

  const acted = await askAndHear(system, (await treeOf(characterId)).id, 'Which fruit do I like?')
  expect(spoken(acted.events)).toBe('There.')
  await eventually(async () => {
    const [task] = await system.system.database.query<{ status: string }>('SELECT status FROM tasks WHERE parent_run_id = $1::uuid', [
      acted.accepted.run_id,
    ])
    return task?.status === 'verified'
  }, 'the end of the task')

  const quoting = await call<RunAccepted>(system, 'POST', `/v1/trees/${(await treeOf(characterId)).id}/runs`, {
    text: 'You said this.',
    citations: [{ node_id: first.question_id, from: 2, to: 6 + said.length }],
  })
  await follow(system, quoting.run_id)
  return { characterId, tree, first, memoryId, otherId, runs: [first, again.accepted, plain.accepted, acted.accepted, quoting] }
}

/** What still holds the words, by what it is. */
async function whatHolds(database: Database = system.system.database): Promise<string[]> {
  const found = await standingTexts(database, words)
  const names = new Map<string, string>()
  const name = async (sql: string): Promise<void> => {
    for (const { id, name: what } of await database.query<{ id: string; name: string }>(sql)) if (!names.has(id)) names.set(id, what)
  }
  await name(`SELECT content_id::text AS id, kind AS name FROM nodes WHERE content_id IS NOT NULL`)
  await name(`SELECT snapshot_content_id::text AS id, 'quotation' AS name FROM citations`)
  await name(`SELECT content_id::text AS id, 'memory' AS name FROM memory_versions`)
  await name(`SELECT content_id::text AS id, 'note' AS name FROM note_versions WHERE content_id IS NOT NULL`)
  await name(`SELECT card_content_id::text AS id, 'card' AS name FROM persona_versions`)
  await name(`SELECT entry_content_id::text AS id, 'lorebook' AS name FROM lore_entry_versions
              UNION SELECT source_content_id::text, 'lorebook' FROM lorebooks WHERE source_content_id IS NOT NULL`)
  await name(`SELECT content_id::text AS id, 'task result' AS name FROM artifacts`)
  await name(`SELECT instruction_content_id::text AS id, 'task' AS name FROM tasks UNION SELECT acceptance_content_id::text, 'task' FROM tasks
              UNION SELECT unnest(input_refs)::text, 'task' FROM tasks`)
  await name(`SELECT arguments_content_id::text AS id, 'arguments of ' || tool AS name FROM effects
              UNION SELECT outcome_content_id::text, 'observation of ' || tool FROM effects WHERE outcome_content_id IS NOT NULL`)
  await name(`SELECT candidate_id::text AS id, 'raw answer of ' || kind AS name FROM runs WHERE candidate_id IS NOT NULL`)
  await name(`SELECT p ->> 'content_id' AS id, 'request of ' || r.kind AS name
              FROM events e JOIN runs r ON r.id = e.run_id, jsonb_array_elements(e.payload -> 'pieces') AS p
              WHERE e.type = 'context.projected' AND p ? 'content_id'`)
  return [...new Set(found.map(({ place, id }) => (id !== null && names.has(id) ? `${place}: ${names.get(id)}` : place)))].toSorted()
}

type Case = {
  what: string
  erase(told: Told): Promise<void>
  /** What still holds the words, and why it may. */
  keeps: readonly string[]
  /** An archive from before is restored too: the same for all, and slow. */
  restores?: true
}

/** Messages that are there, quoted or not, and the heading that their owner gave the tree. */
const conversation = ['contents.body: candidate', 'contents.body: question', 'contents.body: quotation', 'trees.title']
/** A job that was shown nothing but messages that are there. */
const shownMessages = 'contents.body: request of maintenance'
/** What belongs to the character: its card, the piece of the card in its prompts, and its lorebook. */
const persona = ['contents.body: card', 'contents.body: request of answer', 'contents.body: lorebook', 'lorebooks.name']

const remove = (path: string): Promise<void> => call(system, 'DELETE', path)

const cases: readonly Case[] = [
  {
    what: 'a memory',
    erase: ({ memoryId }) => remove(`/v1/memories/${memoryId}`),
    keeps: [...conversation, shownMessages, ...persona],
  },
  {
    what: 'a memory that was undone, once it could no longer be brought back',
    erase: async ({ memoryId }) => {
      await call(system, 'POST', `/v1/memories/${memoryId}/undo`, {})
      await system.system.database.execute(`UPDATE memory_expiries SET erase_at = now() - interval '1 day'`)
      await system.system.memory.upkeep.eraseExpired()
    },
    keeps: [...conversation, shownMessages, ...persona],
  },
  {
    what: 'a question: its answer is a message of its own',
    erase: ({ first }) => remove(`/v1/nodes/${first.question_id}?withdraw=true`),
    keeps: ['contents.body: candidate', 'trees.title', ...persona],
  },
  {
    what: 'a question and its answer',
    restores: true,
    erase: async ({ first }) => {
      await remove(`/v1/nodes/${first.question_id}?withdraw=true`)
      await remove(`/v1/nodes/${first.candidate_id}?withdraw=true`)
    },
    keeps: ['trees.title', ...persona],
  },
  { what: 'a tree', erase: ({ tree }) => remove(`/v1/trees/${tree.id}`), keeps: persona },
  {
    what: 'a character, whose trees stay',
    erase: ({ characterId }) => remove(`/v1/characters/${characterId}`),
    keeps: [...conversation, shownMessages],
  },
  {
    what: 'a tree and its character',
    restores: true,
    erase: async ({ tree, characterId }) => {
      await remove(`/v1/trees/${tree.id}`)
      await remove(`/v1/characters/${characterId}`)
    },
    keeps: [],
  },
]

it('they stand in all that runs and jobs store, before anything is deleted', async () => {
  await tellAll()
  // What a tool read from is named beside its arguments, which may be made of none of it.
  const readings = await system.system.database.query<{ tool: string }>(
    `SELECT DISTINCT e.tool FROM effects e JOIN contents seen ON seen.id = e.outcome_content_id
     JOIN contents source ON seen.derived_from @> ARRAY[source.id] AND source.id <> e.arguments_content_id ORDER BY 1`,
  )
  expect(readings.map(({ tool }) => tool)).toEqual(['notes.list', 'notes.read', 'recall', 'recall_original'])
  const unnamed = await system.system.database.query("SELECT id FROM recall_audits WHERE query_content_ids = '{}'")
  expect(unnamed).toEqual([])
  const found = await whatHolds()
  expect(found).toEqual(
    [
      ...conversation,
      ...persona,
      shownMessages,
      'contents.body: memory',
      'contents.body: raw answer of maintenance',
      'contents.body: raw answer of delegated',
      'contents.body: note',
      'contents.body: task',
      'contents.body: task result',
      ...['delegate', 'notes.write', 'recall'].map((tool) => `contents.body: arguments of ${tool}`),
      ...['notes.list', 'notes.read', 'recall', 'recall_original'].map((tool) => `contents.body: observation of ${tool}`),
      'memory_term_counts.token',
      'memory_terms.token',
    ].toSorted(),
  )
})

describe.each(cases)('once they are deleted: $what', ({ erase, keeps, restores = false }) => {
  it(`nothing holds them but what their owner keeps${restores ? ', nor in a restored archive' : ''}`, async () => {
    const told = await tellAll()
    const file = join(system.system.config.home, `${told.memoryId}.jsonl`)
    if (restores) await system.system.record.archive.out(file)
    await erase(told)
    expect(await whatHolds()).toEqual([...keeps].toSorted())
    const other = (await memoriesOf(told.characterId)).find(({ id }) => id === told.otherId)
    if (!persona.every((place) => keeps.includes(place))) expect(other?.state ?? 'deleted').toBe('deleted')
    else expect(other).toMatchObject({ state: 'live', text: 'The user eats fruit every day.' })
    const audits = await system.system.database.query(
      `SELECT a.id FROM recall_audits a JOIN contents c ON c.id = ANY (a.query_content_ids) WHERE c.erased_at IS NOT NULL AND a.query_salt IS NOT NULL`,
    )
    expect(audits).toEqual([])
    if (!restores) return
    await system.system.record.keepFiles()
    expect(await restoredHolds(file)).toEqual([...keeps].toSorted())
  })
})

/** What holds the words where the archive from before the deletion is restored, with what this home knows to be erased since. */
async function restoredHolds(file: string): Promise<string[]> {
  const store = await openStore(system.tier)
  const foundation = await layFoundation({
    config: loadConfig({ LINGTAI_HOME: store.home, ...store.environment }),
    logger: createLogger('silent'),
    overrides: store.connection ? { connection: store.connection } : {},
  })
  try {
    await composeRecord(foundation).archive.in(file, system.system.record.ledger.path)
    return await whatHolds(foundation.database)
  } finally {
    await foundation.lifecycle.close()
    await store.close()
  }
}
