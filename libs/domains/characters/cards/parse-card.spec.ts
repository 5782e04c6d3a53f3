import { describe, expect, it } from 'vitest'
import { parseCard } from './parse-card.ts'
import { limits } from './limits.ts'
import { plainPng, readPng, textChunk, writePng } from './png.ts'
import { bytesOf, refusal } from './test-support.ts'

const v2 = (data: object, root: object = {}): object => ({
  spec: 'chara_card_v2',
  spec_version: '2.0',
  data: { name: 'Mei', ...data },
  ...root,
})
const v3 = (data: object, root: object = {}): object => ({
  spec: 'chara_card_v3',
  spec_version: '3.0',
  data: { name: 'Mei', ...data },
  ...root,
})
const base64 = (value: unknown): string => Buffer.from(bytesOf(value)).toString('base64')

/** A PNG with the given texts, in order. */
function pngWith(...texts: [keyword: string, value: string][]): Uint8Array {
  const chunks = readPng(plainPng(''))
  return writePng([...chunks.slice(0, -1), ...texts.map(([keyword, value]) => textChunk(keyword, value)), ...chunks.slice(-1)])
}

const codes = (bytes: Uint8Array): string[] => parseCard(bytes).report.map(({ path, code }) => `${code} ${path}`.trim())

describe('parseCard', () => {
  it('reads a flat V1 card', () => {
    const source = {
      name: 'Mei',
      description: 'd',
      personality: 'p',
      scenario: 's',
      first_mes: 'f',
      mes_example: 'm',
      creatorcomment: 'c',
      fav: true,
    }
    const { format, specVersion, card, report } = parseCard(bytesOf(source))
    expect({ format, specVersion, report }).toEqual({ format: 'json', specVersion: 'v1', report: [] })
    expect(card).toMatchObject({
      name: 'Mei',
      description: 'd',
      personality: 'p',
      scenario: 's',
      firstMessage: 'f',
      exampleMessages: 'm',
      creatorNotes: 'c',
    })
    expect(card).toMatchObject({ alternateGreetings: [], tags: [], systemPrompt: '', extensions: {}, source: [] })
    expect(card.book).toBeUndefined()
  })

  it('reads all fields of a V3 card', () => {
    const data = {
      nickname: 'Mimi',
      creator_notes: 'n',
      creator_notes_multilingual: { zh: '注' },
      system_prompt: 'sys {{original}}',
      post_history_instructions: 'post',
      alternate_greetings: ['a', 'b'],
      group_only_greetings: ['g'],
      tags: ['t'],
      creator: 'c',
      character_version: '1.2',
      assets: [{ type: 'icon', uri: 'ccdefault:', name: 'main', ext: 'png' }],
      source: ['https://example.org/1'],
      extensions: { depth_prompt: { depth: 4, prompt: 'x' } },
      character_book: { entries: [], extensions: {} },
    }
    const { specVersion, card, report } = parseCard(bytesOf(v3(data)))
    expect({ specVersion, report }).toEqual({ specVersion: 'v3', report: [] })
    expect(card).toMatchObject({
      nickname: 'Mimi',
      creatorNotesMultilingual: { zh: '注' },
      systemPrompt: 'sys {{original}}',
      postHistoryInstructions: 'post',
      alternateGreetings: ['a', 'b'],
      groupOnlyGreetings: ['g'],
      characterVersion: '1.2',
      assets: [{ type: 'icon', uri: 'ccdefault:', name: 'main', ext: 'png' }],
      source: ['https://example.org/1'],
      extensions: { depth_prompt: { depth: 4, prompt: 'x' } },
    })
  })

  it('C5: keeps a name exactly', () => {
    for (const name of ['A/B: "测试"', '  spaced  ', '../../etc/passwd', '<b>']) {
      expect(parseCard(bytesOf(v2({ name }))).card.name).toBe(name)
    }
  })

  it('C6: ccv3 wins over chara, in either order', () => {
    const [older, newer] = [base64(v2({ name: 'Old' })), base64(v3({ name: 'New' }))]
    for (const png of [pngWith(['chara', older], ['ccv3', newer]), pngWith(['ccv3', newer], ['chara', older])]) {
      const { format, specVersion, card, avatar, source } = parseCard(png)
      expect({ format, specVersion, name: card.name }).toEqual({ format: 'png', specVersion: 'v3', name: 'New' })
      expect(avatar).toBe(png)
      expect(source).toBe(JSON.stringify(v3({ name: 'New' })))
    }
  })

  it('reads chara where ccv3 is broken, and says so', () => {
    const png = pngWith(['ccv3', base64('{"data":')], ['chara', base64(v2({}))])
    expect(parseCard(png).card.name).toBe('Mei')
    expect(codes(png)).toEqual(['fallback_to_chara'])
  })

  it('reports repeated texts and keeps what was found in the picture in the report', () => {
    expect(codes(pngWith(['chara', base64(v2({}))], ['CHARA', base64(v2({}))]))).toEqual(['duplicate_chunk'])
  })

  it('reads base64 with line breaks and a byte order mark inside', () => {
    const encoded = Buffer.from(`\u{FEFF}${JSON.stringify(v2({ name: '青禾' }))}`).toString('base64')
    const png = pngWith(['chara', encoded.replace(/(.{20})/g, '$1\n')])
    expect(parseCard(png).card.name).toBe('青禾')
    expect(codes(png)).toEqual(['byte_order_mark'])
  })

  it.each([
    ['no spec', { data: { name: 'Mei' } }, 'v2', ['spec_missing spec']],
    ['a later spec', { spec: 'chara_card_v9', spec_version: '9.0', data: { name: 'Mei' } }, 'v3', ['unknown_spec spec']],
    ['a later version', { spec: 'chara_card_v3', spec_version: '3.1', data: { name: 'Mei' } }, 'v3', ['unknown_spec_version spec_version']],
    [
      'a version that is no text',
      { spec: 'chara_card_v2', spec_version: 2, data: { name: 'Mei' } },
      'v2',
      ['unknown_spec_version spec_version'],
    ],
    ['no data', { spec: 'chara_card_v2', name: 'Mei' }, 'v1', ['data_missing data']],
    [
      'the name at the root alone',
      { spec: 'chara_card_v2', spec_version: '2.0', name: 'Mei', data: {} },
      'v2',
      ['name_from_root data.name'],
    ],
  ])('makes the best of %s, with a report', (_, source, specVersion, expected) => {
    const parsed = parseCard(bytesOf(source))
    expect({ name: parsed.card.name, specVersion: parsed.specVersion }).toEqual({ name: 'Mei', specVersion })
    expect(codes(bytesOf(source))).toEqual(expected)
  })

  it('reads around values of the wrong kind and names each place', () => {
    const data = {
      description: null,
      personality: 7,
      scenario: ['x'],
      tags: 'fox, tea ,',
      alternate_greetings: 'Hello, you',
      group_only_greetings: ['a', null, {}],
      extensions: [],
      assets: [{ type: 'icon' }, 1],
      character_book: [],
    }
    const bytes = bytesOf(v3(data))
    expect(parseCard(bytes).card).toMatchObject({
      description: '',
      personality: '7',
      scenario: '',
      tags: ['fox', 'tea'],
      alternateGreetings: ['Hello, you'],
      groupOnlyGreetings: ['a'],
      extensions: {},
      assets: [],
    })
    expect(codes(bytes).toSorted()).toEqual(
      [
        'asset_unreadable data.assets[0]',
        'asset_unreadable data.assets[1]',
        'coerced data.alternate_greetings',
        'coerced data.personality',
        'coerced data.tags',
        'wrong_type data.character_book',
        'wrong_type data.extensions',
        'wrong_type data.group_only_greetings[1]',
        'wrong_type data.group_only_greetings[2]',
        'wrong_type data.scenario',
      ].toSorted(),
    )
  })

  it('keeps prototype keys in the text, out of the values, and harmless', () => {
    const source =
      '{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Mei","extensions":{"__proto__":{"polluted":1},"constructor":{"a":1},"ok":2}}}'
    const { card, report, source: kept } = parseCard(bytesOf(source))
    expect(card.extensions).toEqual({ ok: 2 })
    expect(kept).toBe(source)
    expect(report.map(({ code }) => code)).toEqual(['prototype_key', 'prototype_key'])
    expect(Object.assign({}, card.extensions)).not.toHaveProperty('polluted')
    expect({}).not.toHaveProperty('polluted')
  })

  it('makes lone surrogates well-formed and reports them', () => {
    const bytes = bytesOf('{"name":"Mei \\ud83d","description":"\\udc00"}')
    expect(parseCard(bytes).card).toMatchObject({ name: 'Mei \ufffd', description: '\ufffd' })
    expect(codes(bytes)).toEqual(['lone_surrogate name', 'lone_surrogate description'])
  })

  it.each<[string, Uint8Array, string]>([
    ['an empty file', new Uint8Array(), 'empty_file'],
    ['a file past the bound', new Uint8Array(limits.fileBytes + 1), 'too_large'],
    ['text', bytesOf('Once upon a time'), 'not_json'],
    ['cut JSON', bytesOf('{"name":"Mei"'), 'not_json'],
    ['a list', bytesOf('[1]'), 'not_object'],
    ['a number', bytesOf('7'), 'not_object'],
    ['bytes that are no UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), 'invalid_utf8'],
    ['an encoded surrogate', Buffer.concat([bytesOf('{"name":"'), Uint8Array.of(0xed, 0xa0, 0x80), bytesOf('"}')]), 'invalid_utf8'],
    ['deep JSON', bytesOf(`{"name":"Mei","x":${'['.repeat(100_000)}`), 'too_deep'],
    ['a V1 card as deep as only V2 may be', bytesOf(`{"name":"Mei","x":${'['.repeat(63)}${']'.repeat(63)}}`), 'too_deep'],
    ['a NUL', bytesOf('{"name":"Mei\\u0000"}'), 'nul_character'],
    ['no name', bytesOf({ description: 'x' }), 'missing_name'],
    ['a blank name', bytesOf(v2({ name: ' \n' })), 'missing_name'],
    ['a name that is no text', bytesOf(v2({ name: ['Mei'] })), 'missing_name'],
    [
      'greetings without end',
      bytesOf(v2({ alternate_greetings: Array.from({ length: limits.listItems + 1 }, () => '') })),
      'too_many_items',
    ],
    [
      'entries without end',
      bytesOf(v2({ character_book: { entries: Array.from({ length: limits.bookEntries + 1 }, () => 0) } })),
      'too_many_items',
    ],
    ['a ZIP', bytesOf('PK\x03\x04......'), 'unsupported_format'],
    ['a JPEG', Uint8Array.of(0xff, 0xd8, 0xff, 0xe0), 'unsupported_format'],
    ['a broken PNG', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0a), 'not_png'],
    ['a picture alone', plainPng(''), 'no_card_in_png'],
    ['a text that is no base64', pngWith(['chara', '{"name":"Mei"}']), 'bad_base64'],
    ['base64 of no UTF-8', pngWith(['chara', Buffer.of(0x7b, 0xff).toString('base64')]), 'invalid_utf8'],
    ['base64 of no JSON', pngWith(['ccv3', base64('hello')]), 'not_json'],
  ])('refuses %s', (_, bytes, code) => {
    expect(refusal(() => parseCard(bytes)).code).toBe(code)
  })

  it('names the place of what it refuses', () => {
    const book = { entries: [{ keys: ['a'], content: 'x\0' }] }
    expect(refusal(() => parseCard(bytesOf(v2({ character_book: book })))).path).toBe('data.character_book.entries[0].content')
  })
})
