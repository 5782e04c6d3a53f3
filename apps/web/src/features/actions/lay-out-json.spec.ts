import { describe, expect, it } from 'vitest'
import { layOutJson, showUnseen } from './lay-out-json.ts'

/** A JSON text without the white space between its tokens. */
const dense = (text: string) => text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')

describe('layOutJson', () => {
  it('gives each member a line', () => {
    expect(layOutJson('{"to":"a@b","parts":[1,{"x":null}],"none":{},"nobody":[ ]}')).toBe(
      '{\n  "to": "a@b",\n  "parts": [\n    1,\n    {\n      "x": null\n    }\n  ],\n  "none": {},\n  "nobody": []\n}',
    )
  })

  it('keeps every letter: long numbers, doubled keys, escapes, brackets within strings', () => {
    for (const text of [
      '{"amount":12345678901234567890.10,"n":1e400}',
      '{"to":"a","to":"b"}',
      String.raw`{"a":"\u202e\n\"{[,:]}\\","b":"é 潮 🌊"}`,
      '"text"',
      '-0',
      '[[],[{}],{"":[]}]',
      ' { "a" : [ 1 , 2 ] } ',
    ]) {
      expect(dense(layOutJson(text))).toBe(dense(text))
      expect(JSON.parse(layOutJson(text))).toEqual(JSON.parse(text))
    }
  })

  it('leaves alone what is no JSON', () => {
    expect(layOutJson('{"a":')).toBe('{"a":')
    expect(layOutJson('')).toBe('')
  })
})

describe('showUnseen', () => {
  it('lets nothing hide: letters without a shape and turned directions become their numbers', () => {
    expect(showUnseen('pay\u202ebob\u200b')).toEqual([
      { text: 'pay', isUnseen: false },
      { text: 'U+202E', isUnseen: true },
      { text: 'bob', isUnseen: false },
      { text: 'U+200B', isUnseen: true },
    ])
    for (const letter of ['\u0000', '\u00ad', '\u061c', '\u2066', '\ufeff', '\u{e0041}', '\u3164', '\u0085', '\r'])
      expect(showUnseen(letter)[0]?.isUnseen).toBe(true)
  })

  it('leaves lines, tabs and every seen letter alone', () => {
    const text = '{\n\t"a": "é 潮 🌊 العربية"\n}'
    expect(showUnseen(text)).toEqual([{ text, isUnseen: false }])
    expect(showUnseen('')).toEqual([])
  })
})
