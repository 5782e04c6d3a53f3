import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dataKeys } from './card-fields.ts'
import type { CardAsset, CardEdits, NormalisedCard } from './card-types.ts'
import { exportCard } from './export-card.ts'
import type { CardFormat } from './export-card.ts'
import type { JsonValue } from './json-node.ts'
import { knownNames } from './lore-fields.ts'
import type { LoreBook, LoreEntry } from './lore-types.ts'
import { parseCard } from './parse-card.ts'
import { plainPng, readPng, readTextChunk, textChunk, writePng } from './png.ts'
import { bytesOf, cardMeaning, exportText, refusal } from './test-support.ts'

const formats: CardFormat[] = ['json-v2', 'json-v3', 'png']

/** A complete V2 card in an author's own spelling: unknown members everywhere, odd spacing, digits past a double. */
const odd = String.raw`{ "later": 1.0, "spec":"chara_card_v2","spec_version":"2.0","data":{
  "name":"A\/B: \"\u6d4b试\"","description":"d","personality":"","scenario":"","first_mes":"f","mes_example":"","creator_notes":"","system_prompt":"",
  "post_history_instructions":"","alternate_greetings":[],"tags":["b","a"],"creator":"","character_version":"","mine":12345678901234567890,
  "extensions":{"10":1,"9":1.50,"app/state":{"deep":[1e400,-0,{"__proto__":{"x":1.0}}]},"s":"\ud800"},
  "character_book":{"later":2.0,"extensions":{"b":3.0},"entries":[
    {"keys":["k"],"content":"c","enabled":true,"insertion_order":1.0,"extensions":{"e":4.0},"mine":12345678901234567890}]}}}`
const unknown = [
  '"later":1.0',
  '"mine":12345678901234567890',
  '"9":1.50',
  '1e400,-0,{"__proto__":{"x":1.0}}',
  '"later":2.0',
  '"b":3.0',
  '"e":4.0',
  '"insertion_order":1.0',
  String.raw`"s":"\ud800"`,
]

const textsOf = (png: Uint8Array): Record<string, string> =>
  Object.fromEntries(
    readPng(png).flatMap((chunk) => {
      const found = readTextChunk(chunk)
      return found === undefined ? [] : [[found.keyword, Buffer.from(Buffer.from(found.value).toString(), 'base64').toString()]]
    }),
  )

describe('exportCard', () => {
  it('C4: an unedited card comes out byte for byte', () => {
    expect(exportText({ source: odd }, 'json-v2')).toBe(odd)
    const { card } = parseCard(bytesOf(odd))
    expect(exportText({ source: odd, edits: card }, 'json-v2')).toBe(odd)
  })

  it.each(formats)('C4: unknown members and their digits survive as %s', (format) => {
    const bytes = exportCard({ source: odd, edits: { description: 'new' } }, format)
    const texts = format === 'png' ? Object.values(textsOf(bytes)) : [Buffer.from(bytes).toString()]
    expect(texts).toHaveLength(format === 'png' ? 2 : 1)
    for (const text of texts) {
      for (const piece of unknown) expect(text).toContain(piece)
      expect(JSON.parse(text).data).toMatchObject({ name: 'A/B: "测试"', description: 'new' })
    }
  })

  it('C4: an edit of extensions touches its own keys alone', () => {
    const { card } = parseCard(bytesOf(odd))
    const text = exportText({ source: odd, edits: { extensions: { ...card.extensions, '9': 2, fresh: true } } }, 'json-v2')
    expect(text).toContain('"extensions":{"10":1,"9":2,"app/state":{"deep":[1e400,-0,{"__proto__":{"x":1.0}}]}')
    expect(text).toContain('"fresh":true}')
    expect(JSON.parse(exportText({ source: odd, edits: { extensions: {} } }, 'json-v2')).data.extensions).toEqual({})
  })

  it('C5: a name keeps every character, edited or not', () => {
    const edits = { name: '../A\\B: "測試" 🦊\u2028' }
    for (const format of formats) expect(parseCard(exportCard({ source: odd, edits }, format)).card.name).toBe(edits.name)
  })

  it('C6: a PNG holds chara as V2 and ccv3 as V3, once each, before the end of the picture', () => {
    const avatarPng = exportCard({ source: odd, edits: { name: 'Before' } }, 'png')
    const png = exportCard({ source: odd, avatarPng }, 'png')
    expect(readPng(png).map(({ type }) => type)).toEqual(['IHDR', 'IDAT', 'tEXt', 'tEXt', 'IEND'])
    const { chara = '', ccv3 = '' } = textsOf(png)
    expect(JSON.parse(chara)).toMatchObject({ spec: 'chara_card_v2', spec_version: '2.0' })
    expect(JSON.parse(ccv3)).toMatchObject({ spec: 'chara_card_v3', spec_version: '3.0', data: { group_only_greetings: [] } })
    expect(parseCard(png).specVersion).toBe('v3')
    expect(parseCard(png).card.name).toBe('A/B: "测试"')
  })

  it('keeps the other chunks of a picture', () => {
    const [header, ...rest] = readPng(plainPng('x'))
    if (header === undefined) throw new Error('a picture has a header')
    const avatarPng = writePng([header, textChunk('Comment', 'kept'), { type: 'tEXt', data: Buffer.from('no end') }, ...rest])
    expect(readPng(exportCard({ source: odd, avatarPng }, 'png')).map(({ type }) => type)).toEqual([
      'IHDR',
      'tEXt',
      'tEXt',
      'IDAT',
      'tEXt',
      'tEXt',
      'IEND',
    ])
  })

  it('turns V1 into V2 and V3: fields into data, the rest stays at the root', () => {
    const v1 = '{"name":"Mei","description":"d","creatorcomment":"c","fav":1.0,"tags":["t"],"extensions":{"x":2.0},"data":"stray"}'
    expect(exportText({ source: v1 }, 'json-v2')).toBe(
      '{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Mei","description":"d","tags":["t"],"extensions":{"x":2.0},"creator_notes":"c",' +
        '"lingtai_root_data":"stray","personality":"","scenario":"","first_mes":"","mes_example":"","system_prompt":"","post_history_instructions":"",' +
        '"creator":"","character_version":"","alternate_greetings":[]},"creatorcomment":"c","fav":1.0}',
    )
    const before = parseCard(bytesOf(v1))
    for (const format of formats) {
      const after = parseCard(exportCard({ source: v1 }, format))
      expect(after.report).toEqual([])
      expect(after.specVersion).toBe(format === 'json-v2' ? 'v2' : 'v3')
      expect(cardMeaning(after.card)).toEqual(cardMeaning(before.card))
    }
  })

  it('turns V3 into V2 and back without loss', () => {
    const v3 = exportText(
      { source: odd, edits: { nickname: 'n', source: ['s'], assets: [{ type: 'icon', uri: 'u', name: 'main', ext: 'png' }] } },
      'json-v3',
    )
    const v2 = exportText({ source: v3 }, 'json-v2')
    expect(JSON.parse(v2)).toMatchObject({ spec: 'chara_card_v2', spec_version: '2.0' })
    expect(cardMeaning(parseCard(bytesOf(v2)).card)).toEqual(cardMeaning(parseCard(bytesOf(v3)).card))
    expect(exportText({ source: v2 }, 'json-v3')).toBe(v3)
  })

  it('C2: says enabled where the source did not; V3 gets what V3 requires', () => {
    const source = JSON.stringify({
      spec: 'chara_card_v2',
      spec_version: '2.0',
      data: { name: 'Mei', character_book: { entries: [{ keys: ['a'], content: 'x' }] } },
    })
    expect(JSON.parse(exportText({ source }, 'json-v3')).data.character_book).toEqual({
      entries: [{ keys: ['a'], content: 'x', extensions: {}, enabled: true, insertion_order: 100, use_regex: false }],
      extensions: {},
    })
    const { book } = parseCard(bytesOf(source)).card
    expect(cardMeaning(parseCard(exportCard({ source }, 'json-v3')).card).book?.entries).toEqual(
      cardMeaning({ ...parseCard(bytesOf(source)).card, book }).book?.entries,
    )
  })

  it('spells a world info book inside a card as cards do', () => {
    for (const entries of [{ 4: { uid: 4, key: ['a'], disable: true, odd: 1 } }, {}, [{ key: ['a'], uid: 4, disable: true, odd: 1 }]]) {
      const source = JSON.stringify({ spec: 'chara_card_v2', spec_version: '2.0', data: { name: 'Mei', character_book: { entries } } })
      const found = JSON.parse(exportText({ source }, 'json-v2')).data.character_book.entries
      expect(Array.isArray(found)).toBe(true)
      if (found.length > 0) expect(found).toMatchObject([{ id: 4, keys: ['a'], enabled: false, odd: 1 }])
    }
  })

  it('lets copies at the root of a card follow an edit', () => {
    const source = JSON.stringify({
      name: 'Mei',
      creatorcomment: 'c',
      tags: [],
      spec: 'chara_card_v2',
      spec_version: '2.0',
      data: { name: 'Mei', creator_notes: 'c' },
    })
    const root = JSON.parse(exportText({ source, edits: { name: 'Lan', creatorNotes: 'n', tags: ['t'], scenario: 's' } }, 'json-v2'))
    expect(root).toMatchObject({
      name: 'Lan',
      creatorcomment: 'n',
      tags: ['t'],
      data: { name: 'Lan', creator_notes: 'n', tags: ['t'], scenario: 's' },
    })
    expect(root).not.toHaveProperty('scenario')
  })

  it('takes optional fields away', () => {
    const source = JSON.stringify({
      spec: 'chara_card_v3',
      spec_version: '3.0',
      data: { name: 'Mei', nickname: 'n', assets: [], creator_notes_multilingual: {}, character_book: { entries: [] } },
    })
    const edits: CardEdits = { nickname: null, assets: null, creatorNotesMultilingual: null, book: null }
    const { data } = JSON.parse(exportText({ source, edits }, 'json-v3'))
    for (const key of ['nickname', 'assets', 'creator_notes_multilingual', 'character_book']) expect(data).not.toHaveProperty(key)
  })

  it('keeps unknown members of assets that did not change', () => {
    const assets = [
      { type: 'icon', uri: 'a', name: 'main', ext: 'png', mine: 1 },
      { type: 'icon', uri: 'b', name: 'x', ext: 'png', mine: 2 },
    ]
    const source = JSON.stringify({ spec: 'chara_card_v3', spec_version: '3.0', data: { name: 'Mei', assets } })
    const [first, second] = parseCard(bytesOf(source)).card.assets ?? []
    if (first === undefined || second === undefined) throw new Error('two assets were expected')
    const { data } = JSON.parse(exportText({ source, edits: { assets: [second, { ...first, name: 'other' }] } }, 'json-v3'))
    expect(data.assets).toEqual([assets[1], { type: 'icon', uri: 'a', name: 'other', ext: 'png' }])
  })

  it('writes a card that has no source', () => {
    const png = exportCard({ edits: { name: '青禾', tags: ['tea'] } }, 'png')
    expect(parseCard(png)).toMatchObject({ specVersion: 'v3', report: [], card: { name: '青禾', tags: ['tea'] } })
    expect(readPng(png).slice(0, 2)).toEqual(readPng(plainPng('青禾')).slice(0, 2))
  })

  it('refuses what could not be read again', () => {
    const big = { name: 'Mei', description: 'x'.repeat(9 * 1024 * 1024) }
    expect(exportCard({ edits: big }, 'json-v3').length).toBeGreaterThan(9 * 1024 * 1024)
    expect(refusal(() => exportCard({ edits: big }, 'png')).code).toBe('too_large')
    expect(refusal(() => exportCard({ source: odd, edits: { name: ' ' } }, 'json-v2'))).toEqual({ code: 'missing_name', path: 'data.name' })
    expect(refusal(() => exportCard({ edits: { description: 'x' } }, 'json-v2')).code).toBe('missing_name')
    expect(refusal(() => exportCard({ source: odd, edits: { scenario: '\0' } }, 'json-v2'))).toEqual({
      code: 'nul_character',
      path: 'data.scenario',
    })
    expect(refusal(() => exportCard({ source: odd, avatarPng: Uint8Array.of(0xff, 0xd8) }, 'png')).code).toBe('not_png')
  })

  const line = fc.string({ unit: 'binary', maxLength: 15 }).map((text) => text.replaceAll('\0', '').toWellFormed())
  const key = fc.stringMatching(/^[a-z_/]{1,8}$/).filter((text) => !['constructor', 'prototype', '__proto__'].includes(text))
  // as values travel inside: no NUL, no prototype key, integers within the safe range (decisions 7 and 8)
  const clean = (_: string, value: unknown): unknown => (Number.isInteger(value) && !Number.isSafeInteger(value) ? 1 : value)
  const json = fc.jsonValue({ maxDepth: 3 }).map((value): JsonValue =>
    JSON.parse(
      JSON.stringify(value, clean)
        .replaceAll('\\u0000', '')
        .replace(/__proto__|constructor|prototype/g, 'proto'),
    ),
  )
  const extensions = fc.dictionary(key, json, { maxKeys: 4 })
  const entry: fc.Arbitrary<LoreEntry> = fc.record({
    keys: fc.array(line, { maxLength: 3 }),
    secondaryKeys: fc.array(line, { maxLength: 2 }),
    selective: fc.boolean(),
    content: line.filter((text) => !text.startsWith('@@')),
    decorators: fc.constant([]),
    enabled: fc.boolean(),
    constant: fc.boolean(),
    order: fc.integer(),
    position: fc.constantFrom<LoreEntry['position']>(undefined, 'before_char', 'after_char', 'at_depth'),
    scanDepth: fc.option(fc.nat(), { nil: undefined }),
    extensions: fc.constant({}),
  })
  const book: fc.Arbitrary<LoreBook> = fc.record({
    name: fc.option(line, { nil: undefined }),
    entries: fc.array(entry, { maxLength: 3 }),
    extensions: fc.constant({}),
  })
  const asset: fc.Arbitrary<CardAsset> = fc.record({ type: line, uri: line, name: line, ext: line })
  const some = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> => fc.option(arbitrary, { nil: undefined })
  const card: fc.Arbitrary<NormalisedCard> = fc.record({
    name: line.filter((text) => text.trim() !== ''),
    nickname: some(line),
    description: line,
    personality: line,
    scenario: line,
    firstMessage: line,
    alternateGreetings: fc.array(line, { maxLength: 3 }),
    groupOnlyGreetings: fc.array(line, { maxLength: 3 }),
    exampleMessages: line,
    systemPrompt: line,
    postHistoryInstructions: line,
    creatorNotes: line,
    creatorNotesMultilingual: some(fc.dictionary(key, line, { maxKeys: 3 })),
    tags: fc.array(line, { maxLength: 3 }),
    creator: line,
    characterVersion: line,
    book: some(book),
    assets: some(fc.array(asset, { maxLength: 2 })),
    source: fc.array(line, { maxLength: 2 }),
    extensions,
  })
  const format = fc.constantFrom<CardFormat>(...formats)
  /** Edits that say everything: what the card lacks is taken away. */
  const whole = (value: NormalisedCard): CardEdits => ({
    ...value,
    nickname: value.nickname ?? null,
    creatorNotesMultilingual: value.creatorNotesMultilingual ?? null,
    book: value.book ?? null,
    assets: value.assets ?? null,
  })

  it('is undone by parseCard: any card, through any two formats', () => {
    fc.assert(
      fc.property(card, format, format, (value, first, second) => {
        const once = parseCard(exportCard({ edits: whole(value) }, first))
        expect(cardMeaning(once.card)).toEqual(cardMeaning(value))
        const twice = parseCard(exportCard({ source: once.source, avatarPng: once.avatar }, second))
        expect(cardMeaning(twice.card)).toEqual(cardMeaning(value))
      }),
    )
  })

  it('brings any edit of any card through, unknown members beside it', () => {
    fc.assert(
      fc.property(card, card, json, format, format, (old, value, extra, first, second) => {
        const { source } = parseCard(exportCard({ edits: whole(old) }, first))
        const root: Record<string, JsonValue> = JSON.parse(source)
        const spiced = JSON.stringify({ ...root, extra, data: { ...Object(root['data']), extra } })
        const after = parseCard(exportCard({ source: spiced, edits: whole(value) }, second))
        expect(cardMeaning(after.card)).toEqual(cardMeaning(value))
        expect(JSON.parse(after.source)).toMatchObject({ extra, data: { extra } })
      }),
    )
  })

  it('reads or refuses any JSON in any known field, and means the same after an export', () => {
    const known = [...dataKeys].filter((name) => name !== 'name')
    const names = [...knownNames.character_book.members, ...knownNames.world_info.members]
    const inner = [...knownNames.character_book.extensions]
    // a world info book changes its spelling, and with it the places of what is unknown
    const withoutUnknown = ({ book: found, ...rest }: NormalisedCard) => ({
      ...rest,
      book: found && { ...found, origin: undefined, entries: found.entries.map((one) => ({ ...one, origin: undefined, extensions: {} })) },
    })
    const anything = (keys: string[]) => fc.dictionary(fc.constantFrom(...keys), json, { maxKeys: 6 })
    const entries = fc.array(
      fc.tuple(anything(names), fc.option(anything(inner))).map(([one, more]) => (more ? { ...one, extensions: more } : one)),
      { maxLength: 3 },
    )
    const holder = entries.chain((list) => fc.constantFrom<JsonValue>(list, Object.fromEntries(list.entries())))
    fc.assert(
      fc.property(anything(known), fc.option(holder), format, (data, list, to) => {
        const fields = { ...data, name: 'Mei', ...(list && { character_book: { entries: list } }) }
        const before = parseCard(bytesOf({ spec: 'chara_card_v2', spec_version: '2.0', data: fields }))
        const after = parseCard(exportCard({ source: before.source }, to))
        expect(withoutUnknown(after.card)).toEqual(withoutUnknown(before.card))
      }),
    )
  })

  it('reads again whatever it writes of V1 cards', () => {
    const v1 = fc.record(
      { name: line.filter((text) => text.trim() !== ''), description: json, creatorcomment: json, tags: json, data: json, extra: json },
      { requiredKeys: ['name'] },
    )
    fc.assert(
      fc.property(
        v1.filter(({ data }) => typeof data !== 'object' || data === null || Array.isArray(data)),
        format,
        (source, to) => {
          const before = parseCard(bytesOf(source))
          const after = parseCard(exportCard({ source: before.source }, to))
          expect(cardMeaning(after.card)).toEqual(cardMeaning(before.card))
        },
      ),
    )
  })
})
