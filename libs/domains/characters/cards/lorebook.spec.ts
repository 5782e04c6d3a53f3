import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from './json-node.ts'
import { exportLorebook, parseLorebook } from './lorebook.ts'
import type { LorebookFormat } from './lorebook.ts'
import { withLoreDefaults } from './lore-defaults.ts'
import { loreLogics, lorePositions, loreRoles } from './lore-types.ts'
import type { LoreBook, LoreDecorator, LoreEntry } from './lore-types.ts'
import { bookMeaning, bytesOf, refusal } from './test-support.ts'

const textOf = (book: LoreBook, format: LorebookFormat): string => Buffer.from(exportLorebook(book, format)).toString()
const cardBook = (...entries: object[]): LoreBook => parseLorebook(bytesOf({ extensions: {}, entries })).book
const worldBook = (...entries: object[]): LoreBook => parseLorebook(bytesOf({ entries: Object.fromEntries(entries.entries()) })).book
const only = ({ entries }: LoreBook): LoreEntry => {
  const [entry] = entries
  if (entry === undefined || entries.length > 1) throw new Error(`expected one entry, found ${entries.length}`)
  return entry
}

describe('parseLorebook', () => {
  it('C2: an entry without enabled, selective or position lives', () => {
    const entry = only(cardBook({ keys: ['a'], secondary_keys: ['b'], content: 'x' }))
    expect(entry).toMatchObject({ enabled: true, selective: false, constant: false, order: 100 })
    const open = [
      'position',
      'scanDepth',
      'caseSensitive',
      'wholeWords',
      'probability',
      'depth',
      'sticky',
      'cooldown',
      'delay',
      'useGroupScoring',
    ] as const
    for (const name of open) expect(entry[name]).toBeUndefined()
    expect(withLoreDefaults(entry)).toMatchObject({
      enabled: true,
      secondaryKeys: [],
      position: 'before_char',
      probability: 100,
      depth: 4,
      scanDepth: null,
      caseSensitive: null,
      wholeWords: null,
    })
  })

  it('C2: nulls are nothing, and an entry switched off stays off', () => {
    const nulls = {
      enabled: null,
      insertion_order: null,
      position: null,
      constant: null,
      extensions: { position: null, probability: null, scan_depth: null },
    }
    expect(bookMeaning(cardBook({ keys: ['a'], content: 'x', ...nulls })).entries).toEqual(
      bookMeaning(cardBook({ keys: ['a'], content: 'x' })).entries,
    )
    expect(only(cardBook({ keys: ['a'], enabled: false })).enabled).toBe(false)
    expect(only(worldBook({ key: ['a'], disable: true })).enabled).toBe(false)
    expect(only(worldBook({ key: ['a'] }))).toMatchObject({ enabled: true, selective: true })
  })

  it('C3: a book without scan_depth inherits; 0 stays 0', () => {
    for (const book of [{ entries: [] }, { entries: [], scan_depth: null }]) {
      const parsed = parseLorebook(bytesOf(book))
      expect(parsed.book).not.toHaveProperty('scanDepth')
      expect(parsed.report).toEqual([])
    }
    expect(parseLorebook(bytesOf({ entries: [], scan_depth: 0, token_budget: 0, recursive_scanning: false })).book).toMatchObject({
      scanDepth: 0,
      tokenBudget: 0,
      recursive: false,
    })
  })

  it('L4: a blank key is kept and reported', () => {
    const { book, report } = parseLorebook(bytesOf({ entries: [{ keys: ['   ', 'tea'], content: 'x' }] }))
    expect(only(book).keys).toEqual(['   ', 'tea'])
    expect(report).toMatchObject([{ path: 'entries[0].keys[0]', code: 'blank_key' }])
    expect(JSON.parse(textOf(book, 'world_info')).entries[0].key).toEqual(['   ', 'tea'])
  })

  it('reports an entry that nothing can activate', () => {
    const entries = [
      { keys: [' '] },
      { keys: [], constant: true },
      { keys: [], extensions: { vectorized: true } },
      { keys: [], content: '@@activate\nx' },
      { keys: [], enabled: false },
    ]
    const found = parseLorebook(bytesOf({ entries })).report.filter(({ code }) => code === 'no_keys')
    expect(found.map(({ path }) => path)).toEqual(['entries[0].keys'])
  })

  it('reads the same entry from both dialects', () => {
    const card = {
      id: 3,
      keys: ['a', '/b/i'],
      secondary_keys: ['c'],
      comment: 'note',
      content: 'x',
      constant: true,
      selective: true,
      insertion_order: 7,
      enabled: false,
      position: 'after_char',
      extensions: {
        position: 4,
        selectiveLogic: 3,
        vectorized: true,
        depth: 0,
        role: 2,
        outlet_name: 'o',
        probability: 40,
        useProbability: false,
        sticky: 2,
        cooldown: 3,
        delay: 1,
        scan_depth: 0,
        case_sensitive: false,
        match_whole_words: true,
        exclude_recursion: true,
        prevent_recursion: true,
        delay_until_recursion: 2,
        group: 'g, h',
        group_override: true,
        group_weight: 5,
        use_group_scoring: true,
        ignore_budget: true,
        triggers: ['normal'],
        character_filter: { isExclude: true, names: ['n'], tags: ['t'] },
        match_persona_description: true,
        match_character_description: true,
        match_character_personality: true,
        match_character_depth_prompt: true,
        match_scenario: true,
        match_creator_notes: true,
        display_index: 9,
        automation_id: 'q',
        other: 1,
      },
    }
    const world = {
      uid: 3,
      key: ['a', '/b/i'],
      keysecondary: ['c'],
      comment: 'note',
      content: 'x',
      constant: true,
      selective: true,
      order: 7,
      disable: true,
      position: 4,
      selectiveLogic: 3,
      vectorized: true,
      depth: 0,
      role: 2,
      outletName: 'o',
      probability: 40,
      useProbability: false,
      sticky: 2,
      cooldown: 3,
      delay: 1,
      scanDepth: 0,
      caseSensitive: false,
      matchWholeWords: true,
      excludeRecursion: true,
      preventRecursion: true,
      delayUntilRecursion: 2,
      group: 'g, h',
      groupOverride: true,
      groupWeight: 5,
      useGroupScoring: true,
      ignoreBudget: true,
      triggers: ['normal'],
      characterFilter: { isExclude: true, names: ['n'], tags: ['t'] },
      matchPersonaDescription: true,
      matchCharacterDescription: true,
      matchCharacterPersonality: true,
      matchCharacterDepthPrompt: true,
      matchScenario: true,
      matchCreatorNotes: true,
      displayIndex: 9,
      automationId: 'q',
      extensions: { other: 1 },
    }
    const expected = {
      id: 3,
      keys: ['a', '/b/i'],
      secondaryKeys: ['c'],
      comment: 'note',
      content: 'x',
      decorators: [],
      constant: true,
      selective: true,
      order: 7,
      enabled: false,
      position: 'at_depth',
      logic: 'and_all',
      vectorized: true,
      depth: 0,
      role: 'assistant',
      outlet: 'o',
      probability: 40,
      useProbability: false,
      sticky: 2,
      cooldown: 3,
      delay: 1,
      timeUnit: 'message',
      scanDepth: 0,
      caseSensitive: false,
      wholeWords: true,
      excludeRecursion: true,
      preventRecursion: true,
      delayUntilRecursion: 2,
      group: 'g, h',
      groupOverride: true,
      groupWeight: 5,
      useGroupScoring: true,
      ignoreBudget: true,
      triggers: ['normal'],
      characterFilter: { names: ['n'], tags: ['t'], exclude: true },
      matchPersonaDescription: true,
      matchCharacterDescription: true,
      matchCharacterPersonality: true,
      matchCharacterDepthPrompt: true,
      matchScenario: true,
      matchCreatorNotes: true,
      displayIndex: 9,
      automationId: 'q',
      extensions: { other: 1 },
      origin: undefined,
    }
    expect(bookMeaning(cardBook(card)).entries).toEqual([expected])
    expect(bookMeaning(worldBook({}, {}, {}, world)).entries[3]).toEqual(expected)
    // and each dialect writes the other's spelling
    expect(JSON.parse(textOf(cardBook(card), 'world_info')).entries['3']).toEqual(world)
    expect(JSON.parse(textOf(parseLorebook(bytesOf({ entries: { 3: world } })).book, 'character_book')).entries).toEqual([
      { ...card, case_sensitive: false, position: 'after_char' },
    ])
  })

  it('lists world info entries as script engines do: numbers rising', () => {
    const source = '{"entries":{"10":{"key":["c"]},"2":{"key":["b"]},"x":{"key":["d"]},"0":{"key":["a"]}}}'
    expect(parseLorebook(bytesOf(source)).book.entries.map(({ id, keys }) => [id, keys[0]])).toEqual([
      [0, 'a'],
      [2, 'b'],
      [10, 'c'],
      ['x', 'd'],
    ])
  })

  it('reads mixed spellings, each entry by its own keys', () => {
    const { format, book } = parseLorebook(
      bytesOf({
        entries: [
          { key: ['a'], disable: true },
          { keys: ['b'], enabled: false },
        ],
      }),
    )
    expect(format).toBe('world_info')
    expect(book.entries.map(({ keys, enabled }) => [keys[0], enabled])).toEqual([
      ['a', false],
      ['b', false],
    ])
  })

  it('coerces what can only mean one thing and reports the rest', () => {
    const { book, report } = parseLorebook(
      bytesOf({
        entries: [
          {
            keys: 'a, b',
            content: 5,
            enabled: 1,
            insertion_order: '7',
            position: 'nowhere',
            extensions: { depth: -1, sticky: 'x', delay_until_recursion: true, selectiveLogic: 9 },
          },
          'junk',
        ],
      }),
    )
    expect(only(book)).toMatchObject({ keys: ['a', 'b'], content: '5', enabled: true, order: 7, delayUntilRecursion: 1 })
    for (const name of ['position', 'depth', 'sticky', 'logic'] as const) expect(only(book)[name]).toBeUndefined()
    expect(report.map(({ path, code }) => `${code} ${path}`)).toEqual([
      'coerced entries[0].keys',
      'coerced entries[0].content',
      'coerced entries[0].insertion_order',
      'coerced entries[0].enabled',
      'wrong_type entries[0].position',
      'wrong_type entries[0].extensions.selectiveLogic',
      'wrong_type entries[0].extensions.depth',
      'wrong_type entries[0].extensions.sticky',
      'entry_not_object entries[1]',
    ])
  })

  it('lets decorators overrule the fields, without losing their lines', () => {
    const entry = only(
      cardBook({ keys: ['a'], content: '@@depth 2\n@@role assistant\n@@scan_depth 0\n@@is_greeting 1\nText', position: 'after_char' }),
    )
    expect(entry.content).toBe('Text')
    expect(withLoreDefaults(entry)).toMatchObject({
      content: 'Text',
      position: 'at_depth',
      depth: 2,
      role: 'assistant',
      scanDepth: 0,
      activation: 'by_keys',
    })
    expect(withLoreDefaults(only(cardBook({ content: '@@dont_activate\n@@activate\nx' }))).activation).toBe('always')
    expect(withLoreDefaults(only(cardBook({ content: '@@dont_activate\nx' }))).activation).toBe('never')
    expect(withLoreDefaults(only(cardBook({ content: '@@position after_desc\n@@depth 3\nx' }))).position).toBe('after_char')
    const { report } = parseLorebook(bytesOf({ entries: [{ keys: ['a'], content: '@@is_greeting 1\nText' }] }))
    expect(report).toMatchObject([{ code: 'decorator_ignored', path: 'entries[0].content' }])
  })

  it('says which keys of a pattern entry are taken literally', () => {
    const { report } = parseLorebook(bytesOf({ entries: [{ keys: ['cat', 'c[au]t', '/c.t/i'], use_regex: true }] }))
    expect(report.map(({ path, code }) => `${code} ${path}`)).toEqual(['regex_as_literal entries[0].keys[1]'])
  })

  it.each<[string, unknown, string]>([
    ['a card', { spec: 'chara_card_v2', data: { name: 'x' } }, 'not_lorebook'],
    ['entries that are text', { entries: 'x' }, 'not_lorebook'],
    ['a list', '[]', 'not_object'],
    ['deep JSON', `{"entries":[${'['.repeat(200)}`, 'too_deep'],
    ['entries without end', { entries: Array.from({ length: 20_001 }, () => 0) }, 'too_many_items'],
    ['keys without end', { entries: [{ keys: Array.from({ length: 2_001 }, () => '') }] }, 'too_many_items'],
    ['more bytes than allowed', ' '.repeat(16 * 1024 * 1024 + 1), 'too_large'],
  ])('refuses %s', (_, value, code) => {
    expect(refusal(() => parseLorebook(bytesOf(value))).code).toBe(code)
  })
})

describe('exportLorebook', () => {
  it('C4: unknown members and their digits survive in the own dialect', () => {
    const entry =
      '{"keys":["a"],"content":"x","enabled":true,"insertion_order":1,"extensions":{"mine":1.0,"depth":4},"odd":12345678901234567890}'
    const source = `{"name":"b","extensions":{"z":[1e400]},"later":1.50,"entries":[${entry}]}`
    expect(textOf(parseLorebook(bytesOf(source)).book, 'character_book')).toBe(source)
    const world = '{"originalData":{"n":1.0},"entries":{"7":{"uid":7,"key":["a"],"addMemo":true,"odd":12345678901234567890}}}'
    expect(textOf(parseLorebook(bytesOf(world)).book, 'world_info')).toBe(world)
    const wrapped = `{"spec":"lorebook_v3","more":1.0,"data":{"extensions":{},"entries":[{"keys":[],"content":"","extensions":{},"enabled":true,"insertion_order":1,"use_regex":false}]}}`
    expect(textOf(parseLorebook(bytesOf(wrapped)).book, 'lorebook_v3')).toBe(wrapped)
  })

  it('C4: an edit touches its own field alone', () => {
    const source =
      '{"extensions":{},"entries":[{"keys":["a"],"content":"@@depth 2\\nx","enabled":true,"insertion_order":1.0,"extensions":{"mine":1.0,"sticky":3}}]}'
    const { book } = parseLorebook(bytesOf(source))
    const edited = {
      ...book,
      entries: book.entries.map((entry) => ({
        ...entry,
        content: 'y',
        sticky: undefined,
        timeUnit: undefined,
        extensions: { mine: 1, yours: 2 },
      })),
    }
    expect(textOf(edited, 'character_book')).toBe(
      '{"extensions":{},"entries":[{"keys":["a"],"content":"@@depth 2\\ny","enabled":true,"insertion_order":1.0,"extensions":{"mine":1.0,"yours":2}}]}',
    )
  })

  it('C4: unknown members survive a change of dialect, and mean nothing new there', () => {
    const world = '{"entries":{"0":{"uid":0,"key":["a"],"addMemo":true,"keys":["ghost"],"odd":1.0,"extensions":{"depth":99,"mine":2.0}}}}'
    const { book } = parseLorebook(bytesOf(world))
    // both spellings of keys make it a world info entry, since it stands in an object by uid
    const text = textOf(book, 'character_book')
    expect(text).toContain('"odd":1.0')
    expect(text).toContain('"mine":2.0')
    expect(text).toContain('"lingtai_kept":{"keys":["ghost"],"depth":99}')
    const back = only(parseLorebook(bytesOf(text)).book)
    expect(back).toMatchObject({ keys: ['a'] })
    expect(back.depth).toBeUndefined()
    expect(textOf(parseLorebook(bytesOf(text)).book, 'world_info')).toContain('"odd":1.0')
  })

  it('C2: says enabled where the file did not, so that no other reader takes the entry for dead', () => {
    expect(JSON.parse(textOf(cardBook({ keys: ['/a/'] }), 'lorebook_v3'))).toEqual({
      spec: 'lorebook_v3',
      data: {
        extensions: {},
        entries: [{ keys: ['/a/'], content: '', extensions: {}, enabled: true, insertion_order: 100, use_regex: true }],
      },
    })
  })

  it('gives world info uids that rise with the list', () => {
    const entries = [{ id: 5 }, { id: 5 }, { id: 'x' }, {}, { id: 2 }, { id: 20 }].map((entry) => ({ ...entry, keys: ['a'] }))
    expect(Object.keys(JSON.parse(textOf(cardBook(...entries), 'world_info')).entries)).toEqual(['5', '6', '7', '8', '9', '20'])
  })

  it('says the unit of timed effects that are ours', () => {
    const entry: LoreEntry = {
      keys: ['a'],
      secondaryKeys: [],
      selective: true,
      content: 'x',
      decorators: [],
      enabled: true,
      constant: false,
      order: 100,
      sticky: 3,
      extensions: {},
    }
    for (const format of ['world_info', 'character_book'] as const) {
      const back = (one: LoreEntry): LoreEntry => only(parseLorebook(exportLorebook({ entries: [one], extensions: {} }, format)).book)
      expect(back(entry).timeUnit).toBe('round')
      expect(back({ ...entry, timeUnit: 'round' }).timeUnit).toBe('round')
      expect(back({ ...entry, timeUnit: 'message' }).timeUnit).toBe('message')
    }
  })

  const line = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll('\0', '').toWellFormed())
  const content = line.filter((text) => !text.startsWith('@@') && text.trimStart() === text && text !== '')
  const size = fc.double({ min: 0, max: 1_000, noNaN: true, noDefaultInfinity: true })
  const some = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> => fc.option(arbitrary, { nil: undefined })
  const flags = [
    'vectorized',
    'useProbability',
    'caseSensitive',
    'wholeWords',
    'excludeRecursion',
    'preventRecursion',
    'groupOverride',
    'useGroupScoring',
    'ignoreBudget',
    'matchPersonaDescription',
    'matchScenario',
  ] as const
  const sizes = ['depth', 'probability', 'sticky', 'cooldown', 'delay', 'scanDepth', 'groupWeight'] as const
  const optional = <Name extends string, Value>(names: readonly Name[], value: fc.Arbitrary<Value>) =>
    fc.record(Object.fromEntries(names.map((name) => [name, some(value)]))) as fc.Arbitrary<{ [key in Name]?: Value }>
  const entry: fc.Arbitrary<LoreEntry> = fc
    .tuple(
      fc.record({
        keys: fc.array(line, { maxLength: 3 }),
        secondaryKeys: fc.array(line, { maxLength: 3 }),
        selective: fc.boolean(),
        content,
        decorators: fc.constantFrom<LoreDecorator[]>([], [{ name: 'depth', value: '2', fallbacks: [{ name: 'odd', value: '' }] }]),
        enabled: fc.boolean(),
        constant: fc.boolean(),
        order: fc.integer(),
        extensions: fc.dictionary(fc.stringMatching(/^my_[a-z]{1,5}$/), fc.oneof(line, fc.integer(), fc.boolean(), fc.constant(null)), {
          maxKeys: 3,
        }),
      }),
      fc.record({
        comment: some(line),
        name: some(line),
        priority: some(fc.integer()),
        position: some(fc.constantFrom(...lorePositions)),
        logic: some(fc.constantFrom(...loreLogics)),
        role: some(fc.constantFrom(...loreRoles)),
        outlet: some(line),
        group: some(line),
        triggers: some(fc.array(line, { maxLength: 2 })),
        delayUntilRecursion: some(fc.constantFrom<false | number>(false, 1, 3)),
        characterFilter: some(
          fc.record({ names: fc.array(line, { maxLength: 2 }), tags: fc.array(line, { maxLength: 2 }), exclude: fc.boolean() }),
        ),
      }),
      optional(flags, fc.boolean()),
      optional(sizes, size),
      fc.constantFrom('round' as const, 'message' as const),
    )
    .map(([base, rest, switches, numbers, timeUnit]) => ({ ...base, ...rest, ...switches, ...numbers, timeUnit }))
  const book: fc.Arbitrary<LoreBook> = fc.record({
    name: some(line),
    description: some(line),
    scanDepth: some(size),
    tokenBudget: some(size),
    recursive: some(fc.boolean()),
    entries: fc.array(entry, { maxLength: 4 }).map((entries) => entries.map((one, id) => ({ ...one, id }))),
    extensions: fc.constantFrom<JsonObject>({}, { mine: { deep: [1] } }),
  })
  const format = fc.constantFrom<LorebookFormat>('world_info', 'character_book', 'lorebook_v3')

  it('is undone by parseLorebook, in every format and through two', () => {
    fc.assert(
      fc.property(book, format, format, (value, first, second) => {
        const once = parseLorebook(exportLorebook(value, first)).book
        expect(bookMeaning(once)).toEqual(bookMeaning(value))
        const twice = parseLorebook(exportLorebook(once, second)).book
        expect(bookMeaning(twice)).toEqual(bookMeaning(value))
      }),
    )
  })

  it('brings any edit through, from any format into any', () => {
    fc.assert(
      fc.property(book, book, format, format, (old, edited, first, second) => {
        const { book: before } = parseLorebook(exportLorebook(old, first))
        const entries = edited.entries.map((one, index) => ({ ...one, origin: before.entries[index]?.origin }))
        const merged: LoreBook = { ...edited, origin: before.origin, entries }
        expect(bookMeaning(parseLorebook(exportLorebook(merged, second)).book)).toEqual(bookMeaning(merged))
      }),
    )
  })
})
