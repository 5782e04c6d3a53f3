import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NOTE_VERSIONS_MAX, NOTES_MAX, NotesService } from '#domains/tools/notes.service'
import { builtinTools } from '#infra/executors/builtin/index'
import { JoinedCatalogue } from '#infra/executors/catalogue'
import { NotesRepository } from '#infra/prisma/notes.repository'
import { RunRepository } from '#infra/prisma/run.repository'
import { TreeRepository } from '#infra/prisma/tree.repository'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { canonicalJson } from '#kernel/record/canonical-json'
import { MemoryWorld } from '../support/memory-world.ts'
import type { Person, Slice, Talk } from '../support/memory-world.ts'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

describe.each(portTiers)('built-in tools on the %s tier', (name) => {
  let tier: PortTier
  let world: MemoryWorld
  let slice: Slice
  let tools: JoinedCatalogue
  beforeAll(async () => {
    tier = await openPortTier(name)
    world = new MemoryWorld(tier)
    slice = await world.slice()
    tools = catalogueOn(tier)
  })
  afterAll(() => tier.close())

  function catalogueOn({ database, contents }: Pick<PortTier, 'database' | 'contents'>): JoinedCatalogue {
    const { clock } = world
    return new JoinedCatalogue({
      builtin: builtinTools({
        trees: new TreeRepository(database),
        runs: new RunRepository(database),
        recalls: slice.recalls,
        notes: new NotesService({ unit: database, store: new NotesRepository(database), contents, clock, ids: tier.ids }),
        // What is done with what is handed on needs a whole system, and is told in a story.
        desk: { delegate: async () => ({ refused: 'too_deep' }), find: async () => null },
        clock,
        ids: { seed: () => 7 },
      }),
      others: [],
    })
  }

  type Scene = { person: Person; talk: Talk; runId: string }
  const scene = async (options: { realmId?: 'fiction'; zone?: string; person?: Person } = {}): Promise<Scene> => {
    const person = options.person ?? (await world.person())
    const lines = [
      { role: 'user' as const, text: 'First.' },
      { role: 'character' as const, text: 'Second.' },
      { role: 'user' as const, text: 'Third.' },
    ]
    const talk = await world.talk(person, lines, {
      zone: options.zone,
      ...(options.realmId === 'fiction' ? { realmId: person.fiction } : {}),
    })
    return { person, talk, runId: await runOn(person, talk, talk.nodeIds[2]) }
  }
  const runOn = (person: Person, talk: Talk, questionId: string | undefined): Promise<string> =>
    world.run(person, { treeId: talk.treeId, questionId: questionId ?? null })

  const callOf = ({ person, talk, runId }: Scene, tool: string, args: JsonObject, over: Partial<EffectCall> = {}): EffectCall => ({
    effectId: tier.ids.next(),
    ownerId: person.owner_id,
    characterId: person.character_id,
    runId,
    treeId: talk.treeId,
    tool,
    arguments: args,
    idempotencyKey: tier.ids.next(),
    argumentsHash: createHash('sha256').update(canonicalJson(args)).digest('hex'),
    constraints: [],
    signal: new AbortController().signal,
    ...over,
  })
  const execute = async (call: EffectCall, catalogue = tools): Promise<EffectOutcome> => {
    const found = await catalogue.find(call.ownerId, call.tool)
    if (!found) throw new Error(`there is no ${call.tool}`)
    return found.target.execute(call)
  }
  const use = (at: Scene, tool: string, args: JsonObject, over: Partial<EffectCall> = {}): Promise<EffectOutcome> =>
    execute(callOf(at, tool, args, over))
  /** The JSON of what was done. */
  const told = (outcome: EffectOutcome): unknown => {
    if (outcome.type !== 'done') throw new Error(`not done: ${JSON.stringify(outcome)}`)
    return JSON.parse(outcome.observation.text) as unknown
  }
  const code = (outcome: EffectOutcome): string => (outcome.type === 'done' ? 'done' : outcome.code)
  const trustOf = (outcome: EffectOutcome): string | null => (outcome.type === 'done' ? outcome.observation.trust : null)

  describe('contracts', () => {
    it('are listed in name order, with what admission reads of them', async () => {
      const contracts = await tools.list(tier.ids.next())
      expect(
        contracts.map(({ name, capability, consequence, egress, undoable }) => [name, capability, consequence, egress, undoable]),
      ).toEqual([
        ['clock', 'read_only', 'none', 'none', false],
        ['delegate', 'reversible_local', 'lasting', 'none', true],
        ['dice', 'read_only', 'none', 'none', false],
        ['notes.delete', 'reversible_local', 'lasting', 'none', true],
        ['notes.list', 'read_only', 'none', 'none', false],
        ['notes.read', 'read_only', 'none', 'none', false],
        ['notes.write', 'reversible_local', 'lasting', 'none', true],
        ['recall', 'read_only', 'none', 'none', false],
        ['recall_original', 'read_only', 'none', 'none', false],
      ])
      for (const contract of contracts) {
        expect(contract.parameters).toMatchObject({ type: 'object', additionalProperties: false })
        expect(contract.version).toMatch(/^[0-9a-f]{64}$/)
      }
      expect(await tools.find(tier.ids.next(), 'shell')).toBeNull()
    })

    it('hold calls to no egress, and only what keeps versions to being undoable', async () => {
      const held = async (tool: string) => {
        const found = await tools.find(tier.ids.next(), tool)
        return found && [...found.target.enforces(found.contract)].sort()
      }
      expect(await held('clock')).toEqual(['exact_arguments', 'no_egress', 'single_use'])
      expect(await held('notes.write')).toEqual(['exact_arguments', 'no_egress', 'single_use', 'undoable'])
    })

    it('do nothing with arguments that do not fit, or once aborted', async () => {
      const at = await scene()
      for (const [tool, args] of [
        ['clock', { zone: 'UTC' }],
        ['dice', { formula: 6 }],
        ['notes.write', { text: '  ' }],
        ['notes.write', { text: 'x'.repeat(16_001) }],
        ['notes.read', { number: 0 }],
        ['recall', { query: 'x', owner_id: at.person.owner_id }],
        ['recall_original', { node_id: 'x' }],
      ] as const) {
        expect(code(await use(at, tool, args)), tool).toBe('arguments_invalid')
      }
      expect(code(await use(at, 'notes.write', { text: 'x' }, { signal: AbortSignal.abort() }))).toBe('aborted')
      expect(told(await use(at, 'notes.list', {}))).toEqual({ notes: [] })
    })
  })

  it('clock: the zone of the run’s own tree, UTC without one', async () => {
    const at = await scene({ zone: 'Asia/Kolkata' })
    expect(told(await use(at, 'clock', {}))).toEqual({ now: '2026-06-01T17:30:00+05:30', weekday: 'Monday', zone: 'Asia/Kolkata' })
    expect(told(await use(at, 'clock', {}, { treeId: null }))).toMatchObject({ now: '2026-06-01T12:00:00+00:00', zone: 'UTC' })
    const other = await scene()
    expect(told(await use(other, 'clock', {}, { treeId: at.talk.treeId }))).toMatchObject({ zone: 'UTC' })
  })

  it('dice: drawn from the seed alone, and bounded', async () => {
    const at = await scene()
    const first = told(await use(at, 'dice', { formula: '3d6+2' })) as { dice: number[]; total: number; seed: number }
    expect(first.dice).toHaveLength(3)
    expect(first.total).toBe(first.dice.reduce((sum, face) => sum + face, 2))
    expect(told(await use(at, 'dice', { formula: '3d6+2' }))).toEqual(first)
    for (const formula of ['0d6', '101d6', '1d1', '1d1001', 'd', '2d6+100000', '2d6*2', '']) {
      expect(code(await use(at, 'dice', { formula })), formula).toBe('no_dice_formula')
    }
  })

  describe('notes', () => {
    it('are written, read, listed, rewritten and deleted; every earlier version stays', async () => {
      const at = await scene()
      expect(told(await use(at, 'notes.write', { text: 'Tea at four.\nGreen.' }))).toEqual({ number: 1, version: 1 })
      expect(told(await use(at, 'notes.write', { text: '第二条：周末去爬山' }))).toEqual({ number: 2, version: 1 })
      expect(told(await use(at, 'notes.write', { number: 1, text: 'Tea at five.' }))).toEqual({ number: 1, version: 2 })
      expect(told(await use(at, 'notes.list', {}))).toMatchObject({
        notes: [
          { number: 1, version: 2, first_line: 'Tea at five.', characters: 12 },
          { number: 2, version: 1, first_line: '第二条：周末去爬山', characters: 9 },
        ],
      })
      expect(told(await use(at, 'notes.read', { number: 1 }))).toMatchObject({ text: 'Tea at five.', version: 2 })
      expect(told(await use(at, 'notes.read', { number: 1, version: 1 }))).toMatchObject({ text: 'Tea at four.\nGreen.' })
      expect(told(await use(at, 'notes.delete', { number: 1 }))).toEqual({ number: 1, version: 3 })
      expect(code(await use(at, 'notes.read', { number: 1 }))).toBe('no_such_note')
      expect(code(await use(at, 'notes.delete', { number: 1 }))).toBe('no_such_note')
      expect(told(await use(at, 'notes.read', { number: 1, version: 2 }))).toMatchObject({ text: 'Tea at five.' })
      expect(told(await use(at, 'notes.write', { number: 1, text: 'Tea at five.' }))).toEqual({ number: 1, version: 4 })
      expect(code(await use(at, 'notes.write', { number: 9, text: 'x' }))).toBe('no_such_note')
    })

    it('stay with their owner, character and realm', async () => {
      const at = await scene()
      await use(at, 'notes.write', { text: 'real' })
      const fiction = await scene({ realmId: 'fiction', person: at.person })
      expect(told(await use(fiction, 'notes.list', {}))).toEqual({ notes: [] })
      await use(fiction, 'notes.write', { text: 'dragons' })
      expect((told(await use(at, 'notes.list', {})) as { notes: unknown[] }).notes).toHaveLength(1)
      const sibling = { ...at.person, character_id: await world.character(at.person) }
      expect(told(await use({ ...at, person: sibling }, 'notes.list', {}))).toEqual({ notes: [] })
      const stranger = await scene()
      expect(code(await use(stranger, 'notes.list', {}, { treeId: at.talk.treeId }))).toBe('no_realm')
      expect(code(await use(stranger, 'notes.write', { text: 'x' }, { characterId: at.person.character_id }))).toBe('no_such_note')
      expect(code(await use(at, 'notes.write', { text: 'x' }, { treeId: null }))).toBe('no_realm')
    })

    it('give back the trust that they were written with, and none unless it was said', async () => {
      const at = await scene()
      await use(at, 'notes.write', { text: 'from a page' }, { trust: 'untrusted' })
      await use(at, 'notes.write', { text: 'from the card' }, { trust: 'workspace' })
      await use(at, 'notes.write', { text: 'nobody said' })
      expect(trustOf(await use(at, 'notes.read', { number: 1 }))).toBe('untrusted')
      expect(trustOf(await use(at, 'notes.read', { number: 2 }))).toBe('workspace')
      expect(trustOf(await use(at, 'notes.read', { number: 3 }))).toBe('untrusted')
      expect(trustOf(await use(at, 'notes.list', {}))).toBe('untrusted')
    })

    it('are written once per key, which is bound to its arguments; a look-up is authoritative', async () => {
      const at = await scene()
      const call = callOf(at, 'notes.write', { text: 'once' })
      const lookUp = async (asked: EffectCall) => (await tools.find(asked.ownerId, asked.tool))?.target.lookUp(asked)
      expect(await lookUp(call)).toEqual({ type: 'absent' })
      const answers = await Promise.all([execute(call), execute(call), execute(call)])
      expect(answers.map(told)).toEqual([1, 1, 1].map((number) => ({ number, version: 1 })))
      const other = { ...call, arguments: { text: 'twice' }, argumentsHash: createHash('sha256').update('other').digest('hex') }
      expect(code(await execute(other))).toBe('key_used_otherwise')
      expect((told(await use(at, 'notes.list', {})) as { notes: unknown[] }).notes).toHaveLength(1)
      expect(await lookUp(call)).toMatchObject({
        type: 'committed',
        argumentsHash: call.argumentsHash,
        observation: { trust: 'untrusted' },
      })
      const stranger = await scene()
      expect(await lookUp({ ...call, ownerId: stranger.person.owner_id })).toEqual({ type: 'absent' })
      const erased = callOf(at, 'notes.delete', { number: 1 })
      await execute(erased)
      expect(await lookUp(erased)).toMatchObject({ type: 'committed' })
      expect(await (await tools.find(at.person.owner_id, 'clock'))?.target.lookUp(call)).toBeNull()
    })

    it('written by twelve at once get twelve numbers', async () => {
      const at = await scene()
      const replica = catalogueOn(tier.replica())
      const written = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          execute(callOf(at, 'notes.write', { text: `note ${index}` }), index % 2 === 0 ? tools : replica),
        ),
      )
      const numbers = written.map((outcome) => (told(outcome) as { number: number }).number)
      expect(numbers.sort((left, right) => left - right)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
    })

    it('leave nothing of what was half-written', async () => {
      const at = await scene()
      const call = callOf(at, 'notes.write', { text: 'lost' }, { idempotencyKey: 'x'.repeat(600) })
      await expect(execute(call)).rejects.toThrow()
      expect(told(await use(at, 'notes.list', {}))).toEqual({ notes: [] })
    })

    it('are bounded in number and in versions', async () => {
      const at = await scene()
      await use(at, 'notes.write', { text: 'first' })
      await tier.database.run(async () => {
        await tier.database.execute(
          `INSERT INTO notes (id, owner_id, character_id, realm_id, number, current_version, created_at)
           SELECT gen_random_uuid(), owner_id, character_id, realm_id, g, 1, now() FROM notes, generate_series(2, $2::int) g WHERE owner_id = $1::uuid`,
          [at.person.owner_id, NOTES_MAX],
        )
        await tier.database.execute(
          `INSERT INTO note_versions (note_id, version, owner_id, content_id, trust, run_id, created_at)
           SELECT n.id, 1, n.owner_id, f.content_id, 'workspace', f.run_id, now()
           FROM notes n, notes o JOIN note_versions f ON f.note_id = o.id
           WHERE n.owner_id = $1::uuid AND n.number > 1 AND o.owner_id = $1::uuid AND o.number = 1`,
          [at.person.owner_id],
        )
      })
      expect(code(await use(at, 'notes.write', { text: 'one more' }))).toBe('too_many_notes')
      await use(at, 'notes.delete', { number: 7 })
      expect(told(await use(at, 'notes.write', { text: 'in its place' }))).toEqual({ number: NOTES_MAX + 1, version: 1 })
      expect(code(await use(at, 'notes.write', { number: 7, text: 'back' }))).toBe('too_many_notes')
      await tier.database.execute(
        `DO $$ DECLARE note record; BEGIN
           SELECT n.id, n.owner_id, v.run_id INTO note FROM notes n JOIN note_versions v ON v.note_id = n.id WHERE n.owner_id = '${at.person.owner_id}' AND n.number = 1;
           FOR version IN 2..${NOTE_VERSIONS_MAX} LOOP
             INSERT INTO note_versions VALUES (note.id, version, note.owner_id, NULL, 'workspace', note.run_id, now());
             UPDATE notes SET current_version = version WHERE id = note.id;
           END LOOP;
         END $$`,
      )
      expect(code(await use(at, 'notes.write', { number: 1, text: 'too often' }))).toBe('too_many_versions')
    })

    it('cannot be changed around their versions', async () => {
      const at = await scene()
      await use(at, 'notes.write', { text: 'kept' })
      const owner = [at.person.owner_id]
      const { database } = tier
      await expect(database.execute('DELETE FROM notes WHERE owner_id = $1::uuid', owner)).rejects.toThrow(/gains versions/)
      await expect(database.execute(`UPDATE note_versions SET trust = 'trusted' WHERE owner_id = $1::uuid`, owner)).rejects.toThrow(
        /append-only/,
      )
      await expect(database.execute('UPDATE notes SET current_version = 2 WHERE owner_id = $1::uuid', owner)).rejects.toThrow()
      await expect(database.execute('UPDATE note_keys SET version = 1 WHERE owner_id = $1::uuid', owner)).rejects.toThrow(/only ever loses/)
    })
  })

  describe('recall', () => {
    it('finds the character’s own memories of the run’s realm, writes down how, and strengthens once', async () => {
      const at = await scene()
      await world.remember(slice, at.person, ['Prefers green tea in the afternoon'])
      const outcome = await use(at, 'recall', { query: 'what tea?' })
      expect(told(outcome)).toMatchObject({ memories: [{ text: 'Prefers green tea in the afternoon' }] })
      expect(trustOf(outcome)).toBe('workspace')
      const audits = await slice.recalls.list(at.person.owner_id, { run_id: at.runId, limit: 10 })
      expect(audits.items).toHaveLength(1)
      const stranger = await scene()
      expect(told(await use(stranger, 'recall', { query: 'what tea?' }))).toEqual({ memories: [] })
      expect(code(await use(stranger, 'recall', { query: 'what tea?' }, { treeId: at.talk.treeId }))).toBe('no_realm')
    })

    it('tells nothing of a fiction in the real realm', async () => {
      const at = await scene()
      await world.remember(slice, at.person, ['Owns a dragon called Ember'], { realmId: at.person.fiction })
      expect(told(await use(at, 'recall', { query: 'dragon Ember' }))).toEqual({ memories: [] })
      const fiction = await scene({ realmId: 'fiction', person: at.person })
      expect(told(await use(fiction, 'recall', { query: 'dragon Ember' }))).toMatchObject({
        memories: [{ text: 'Owns a dragon called Ember' }],
      })
    })
  })

  describe('recall_original', () => {
    it('says what stands on the run’s own path, in pieces where asked', async () => {
      const at = await scene()
      const [first] = at.talk.nodeIds
      expect(told(await use(at, 'recall_original', { node_id: first ?? '' }))).toMatchObject({
        text: 'First.',
        role: 'user',
        characters: 6,
      })
      expect(told(await use(at, 'recall_original', { node_id: first ?? '', from: 2, characters: 3 }))).toMatchObject({
        text: 'rst',
        from: 2,
        to: 5,
      })
      expect(trustOf(await use(at, 'recall_original', { node_id: at.talk.nodeIds[1] ?? '' }))).toBe('workspace')
    })

    it('never halves a sign', async () => {
      const at = await scene()
      const smile = await world.say(at.talk, { role: 'user', text: 'a😀b' }, at.talk.nodeIds[1] ?? '')
      const runId = await runOn(at.person, at.talk, smile)
      expect(told(await use({ ...at, runId }, 'recall_original', { node_id: smile, characters: 2 }))).toMatchObject({ text: 'a😀', to: 3 })
    })

    it('knows no sibling, no descendant, no other tree, no other owner and nothing deleted', async () => {
      const at = await scene()
      const [first = '', second = ''] = at.talk.nodeIds
      const sibling = await world.say(at.talk, { role: 'character', text: 'Another second.' }, first)
      const below = await world.say(at.talk, { role: 'character', text: 'Fourth.' }, at.talk.nodeIds[2] ?? '')
      const elsewhere = await scene({ person: at.person })
      const stranger = await scene()
      for (const node of [sibling, below, elsewhere.talk.nodeIds[0], stranger.talk.nodeIds[0], tier.ids.next()]) {
        expect(code(await use(at, 'recall_original', { node_id: node ?? '' })), node).toBe('not_on_path')
      }
      expect(code(await use(stranger, 'recall_original', { node_id: first }, { runId: at.runId }))).toBe('not_on_path')
      await world.deleteNode(second)
      expect(code(await use(at, 'recall_original', { node_id: second }))).toBe('message_gone')
    })
  })
})
