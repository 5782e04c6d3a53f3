import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Report } from './card-error.ts'
import { fromPlain, stringify, toPlain } from './json-node.ts'
import type { JsonValue } from './json-node.ts'
import { limits } from './limits.ts'
import { joinPath, parseJson } from './parse-json.ts'
import { refusal } from './test-support.ts'

const read = (text: string) => parseJson(text, { report: new Report() })

describe('parseJson', () => {
  it('reads what JSON.parse reads, whatever the spacing', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(JSON.parse(stringify(read(text)))).toEqual(JSON.parse(text))
        // what we read is what JSON.parse reads, but for numbers past a double and prototype keys
        if (!/\d{16}|__proto__|constructor|prototype/.test(text)) expect(toPlain(read(text))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('refuses exactly what JSON.parse refuses', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"',
      '\\',
      '1',
      '-',
      '.5',
      'e3',
      '01',
      'true',
      'nul',
      ' ',
      '\n',
      '\t',
      '\u00a0',
    )
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 12 }), (fragments) => {
        const text = fragments.join('')
        expect(attempt(() => read(text))).toBe(attempt(() => JSON.parse(text)))
      }),
      { numRuns: 3_000 },
    )
  })

  it('keeps digits, escapes, order and repeated keys', () => {
    const text = String.raw`{"2":12345678901234567890,"1":1.0,"a":[1e400,-0,0.10],"s":"\u0041\/\ud83d\ude00","s":null}`
    expect(stringify(read(text))).toBe(text)
  })

  it('gives numbers past a double as their digits', () => {
    expect(toPlain(read('[12345678901234567890, 1.0, 1e400, 9007199254740991]'))).toEqual([
      '12345678901234567890',
      1,
      '1e400',
      9007199254740991,
    ])
  })

  it.each([
    ['['.repeat(65) + ']'.repeat(65), 'too_deep'],
    ['{"a":'.repeat(100_000), 'too_deep'],
    [`[${'[],'.repeat(limits.jsonValues)}[]]`, 'too_many_values'],
    [`[${'1'.repeat(1_001)}]`, 'number_too_long'],
    ['{"a":"x\\u0000"}', 'nul_character'],
    ['{"a\\u0000":1}', 'nul_character'],
    ['{"a":"x\0"}', 'nul_character'],
    ['"abc', 'not_json'],
    ['"abc\\', 'not_json'],
    ['"\\x"', 'not_json'],
    ['', 'not_json'],
    ['{"a":1}}', 'not_json'],
  ])('refuses hostile text %#', (text, code) => {
    expect(refusal(() => read(text)).code).toBe(code)
  })

  it('takes nesting of exactly the bound', () => {
    const text = '['.repeat(limits.depth) + ']'.repeat(limits.depth)
    expect(stringify(read(text))).toBe(text)
  })

  it('reports repeated and prototype keys and lone surrogates, with their places', () => {
    const report = new Report()
    const text = String.raw`{"a":[{"__proto__":{"polluted":1},"constructor":2}],"b":1,"b":"x\ud800"}`
    const node = parseJson(text, { report })
    expect(report.list().map(({ path, code }) => [path, code])).toEqual([
      ['a[0].__proto__', 'prototype_key'],
      ['a[0].constructor', 'prototype_key'],
      ['b', 'lone_surrogate'],
      ['', 'duplicate_key'],
    ])
    expect(toPlain(node)).toEqual({ a: [{}], b: 'x\ufffd' })
    expect(stringify(node)).toBe(text)
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  it('writes paths that can be read back', () => {
    expect(['data', 'odd key', 3, 'x'].reduce<string>(joinPath, '')).toBe('data["odd key"][3].x')
  })

  it('bounds a report', () => {
    const report = new Report()
    parseJson(`[${'"\\ud800",'.repeat(limits.findings + 20)}1]`, { report })
    expect(report.list()).toHaveLength(limits.findings + 1)
    expect(report.list().at(-1)).toMatchObject({ code: 'findings_left_out', message: '20 more findings are not listed' })
  })
})

describe('fromPlain', () => {
  it('writes what toPlain reads', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain = toPlain(read(JSON.stringify(value)))
        expect(toPlain(read(stringify(fromPlain(plain))))).toEqual(plain)
      }),
    )
  })

  it('refuses what JSON cannot hold', () => {
    const values: [JsonValue, string][] = [
      [Number.NaN, 'wrong_number'],
      [['\0'], 'nul_character'],
    ]
    for (const [value, code] of values) expect(refusal(() => fromPlain(value)).code).toBe(code)
  })
})

function attempt(action: () => unknown): 'read' | 'refused' {
  try {
    action()
    return 'read'
  } catch {
    // only whether it was refused counts here
    return 'refused'
  }
}
