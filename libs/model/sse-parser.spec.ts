import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSseParser, type SseItem } from './sse-parser.ts'

const limits = { maxEventChars: 10_000, maxTotalChars: 100_000 }

const parseInPieces = (body: Uint8Array, cuts: number[]): SseItem[] => {
  const parser = createSseParser(limits)
  const items: SseItem[] = []
  let from = 0
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    items.push(...parser.push(body.subarray(from, cut)))
    from = cut
  }
  items.push(...parser.push(body.subarray(from)), ...parser.end())
  return items
}
const parse = (text: string): SseItem[] => parseInPieces(new TextEncoder().encode(text), [])
const values = (items: SseItem[]): unknown[] => items.flatMap((item) => (item.kind === 'json' ? [item.value] : []))

describe('the SSE reader', () => {
  it('T9 reads the same items wherever the bytes are cut', () => {
    const body = new TextEncoder().encode(
      ': keep-alive\r\n\r\nevent: x\r\ndata: {"t":"龙😀"}\r\n\r\ndata: {"t":\ndata: "é𠮷"}\n\ndata: {"a":1}\rdata: {"a":2}\r\r{"bare":"Ω"}\nid: 7\nretry: 10\n\ndata: [DONE]\n\n',
    )
    const whole = parseInPieces(body, [])
    expect(values(whole)).toEqual([{ t: '龙😀' }, { t: 'é𠮷' }, { a: 1 }, { a: 2 }, { bare: 'Ω' }])
    expect(whole.at(-1)).toEqual({ kind: 'done' })
    expect(whole[1]).toMatchObject({ kind: 'json', event: 'x' })
    for (let cut = 0; cut <= body.length; cut++) expect(parseInPieces(body, [cut])).toEqual(whole)
    fc.assert(
      fc.property(fc.array(fc.nat(body.length)), (cuts) => {
        expect(parseInPieces(body, cuts)).toEqual(whole)
      }),
    )
    expect(parseInPieces(body, Array.from(body.keys()))).toEqual(whole)
  })

  it('needs no blank line between events', () => {
    expect(values(parse('data: {"a":1}\ndata: {"a":2}\n'))).toEqual([{ a: 1 }, { a: 2 }])
  })

  it('reads a last line without a newline when it is whole, and leaves a cut one out', () => {
    expect(values(parse('data: {"a":1}'))).toEqual([{ a: 1 }])
    expect(parse('data: {"a":1}\n\ndata: {"a":"\u9f99')).toEqual([{ kind: 'json', value: { a: 1 }, event: '' }])
  })

  it('ignores fields it does not know and an event name without data', () => {
    expect(parse('foo: bar\nevent: ping\n\ndata: {"a":1}\n\n')).toEqual([{ kind: 'json', value: { a: 1 }, event: '' }])
  })

  it.each([['<html>'], ['data: not json\n\ndata: {"a":1}'], ['data: {"a":1\n\n'], ['502 Bad Gateway (upstream)']])(
    'calls %j garbage and reads no further',
    (text) => {
      const items = parse(`${text}\ndata: {"later":true}\n\n`)
      expect(items).toEqual([{ kind: 'fault', code: 'garbage', sample: expect.any(String) }])
    },
  )

  it('keeps what came before the garbage of the same bytes', () => {
    expect(parse('data: {"a":1}\n\n<html>\n').map((item) => item.kind)).toEqual(['json', 'fault'])
  })

  it('bounds one event, ended or not, and the whole body', () => {
    const fault = { kind: 'fault', code: 'oversize' }
    expect(parse(`data: "${'x'.repeat(11_000)}"\n\n`)).toMatchObject([fault])
    expect(parse(`data: ${'x'.repeat(11_000)}`)).toMatchObject([fault])
    expect(createSseParser(limits).push(new TextEncoder().encode('y'.repeat(10_001)))).toMatchObject([fault])
    const line = `data: ${JSON.stringify({ t: 'z'.repeat(5_000) })}\n\n`
    expect(parse(line.repeat(25)).at(-1)).toMatchObject(fault)
    expect(parse(`data: {\n${'data: "a":{\n'.repeat(3_000)}`)).toMatchObject([fault])
  })

  it('reads a hostile many-line event in linear time: it is tried a few times only', () => {
    const parser = createSseParser({ maxEventChars: 1_000_000, maxTotalChars: 10_000_000 })
    const original = JSON.parse
    let tries = 0
    JSON.parse = (...args) => {
      tries += 1
      return original(...args)
    }
    try {
      expect(parser.push(new TextEncoder().encode('data: {"a":[{\n' + 'data: }\n'.repeat(10_000)))).toEqual([])
    } finally {
      JSON.parse = original
    }
    expect(tries).toBeLessThan(20)
  })
})
