import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expandMacros } from './macros.ts'
import type { MacroContext, MacroValue } from './macros.ts'
import { readings, testId, values } from './test-prompts.ts'

const plain = (text: string): MacroValue => ({ text, trust: 'workspace', contentIds: [] })
const context: MacroContext = { scope: 'world.1', readings, chatKey: testId(5000), values: { ...values, lastmessage: plain('Hello') } }
const expand = (text: string, changes: Partial<MacroContext> = {}): string => expandMacros(text, { ...context, ...changes }).text

describe('names and fields', () => {
  it.each([
    ['{{char}} and {{user}}', 'Lin and Ada'],
    ['{{CHAR}} {{ user }} {{Char}}', 'Lin Ada Lin'],
    ['<USER> <bot> <Char> <group>', 'Ada Lin Lin Lin'],
    ['{{group}} {{charIfNotGroup}}', 'Lin Lin'],
    ['{{lastMessage}}', 'Hello'],
    ['{{{char}}}', '{Lin}'],
    ["{{char}}'s {{user}}", "Lin's Ada"],
  ])('%s', (text, expanded) => {
    expect(expand(text)).toBe(expanded)
  })

  it('leaves what it does not know as it is, known macros inside it expanded', () => {
    expect(expand('{{nobody}} {{getvar::x}} {{char::x}} {{lastCharMessage}}')).toBe(
      '{{nobody}} {{getvar::x}} {{char::x}} {{lastCharMessage}}',
    )
    expect(expand('{{setvar::name::{{user}}}}')).toBe('{{setvar::name::Ada}}')
    expect(expand('{{}} {{ }} }} {{char')).toBe('{{}} {{ }} }} {{char')
    expect(expand('{{constructor}} {{__proto__}} {{toString}}')).toBe('{{constructor}} {{__proto__}} {{toString}}')
  })

  it('expands once: what a macro answers is not looked at again', () => {
    const tricky = { ...values, char: plain('{{user}} <USER> {{roll:6}}'), user: plain('a::b,c') }
    expect(expand('{{char}}', { values: tricky })).toBe('{{user}} <USER> {{roll:6}}')
    expect(expand('{{random::{{user}}::{{user}}}}', { values: tricky })).toBe('a::b,c')
    expect(expand('{{us{{noop}}er}}')).toBe('{{user}}')
  })

  it('names the values that went in, once each', () => {
    const { used } = expandMacros('{{char}} <BOT> {{user}} {{random::{{lastMessage}}}}', context)
    expect(used).toEqual([context.values.char, context.values.user, context.values.lastmessage])
    expect(expandMacros('plain', context).used).toEqual([])
  })

  it('leaves {{original}} of a text that overrides nothing empty', () => {
    expect(expand('a {{original}} b')).toBe('a  b')
  })
})

describe('dates', () => {
  it.each([
    ['{{time}}', '7:05 AM'],
    ['{{date}}', 'November 30, 2026'],
    ['{{weekday}}', 'Monday'],
    ['{{isotime}} {{isodate}}', '07:05 2026-11-30'],
    ['{{datetimeformat YYYY.MM.DD HH:mm}}', '2026.11.30 07:05'],
    ['{{datetimeformat::dddd}}', 'Monday'],
    ['{{time_UTC+2}} {{time_UTC-5}} {{time_UTC+330}}', '1:05 AM 6:05 PM 4:35 AM'],
    ['{{time::UTC+2}}', '1:05 AM'],
  ])('%s', (text, expanded) => {
    expect(expand(text)).toBe(expanded)
  })

  it('tells idle time only where it was read', () => {
    expect(expand('{{idle_duration}}')).toBe('{{idle_duration}}')
    expect(expand('{{idle_duration}}', { readings: { ...readings, idleMs: 3 * 3_600_000 } })).toBe('3 hours')
  })
})

describe('layout macros', () => {
  it.each([
    ['a{{newline}}b{{newline::2}}c{{space::3}}d', 'a\nb\n\nc   d'],
    ['a\n\n{{trim}}\r\n\nb', 'ab'],
    ['{{trim}}\na\n{{noop}}{{trim}}\nb', 'a\nb'],
    ['a\n{{// a note, {{char}} inside }}b', 'a\nb'],
    ['a{{//\nlong\nnote}}b{{comment: hidden}}{{hidden_key: k}}', 'ab'],
    ['{{reverse:abc}}', 'cba'],
    ['{{newline::999999999}}', '{{newline::999999999}}'],
  ])('%j', (text, expanded) => {
    expect(expand(text)).toBe(expanded)
  })
})

describe('draws', () => {
  it('chooses one of a list, in either spelling', () => {
    const choices = ['a', 'b', 'c']
    for (const text of [
      '{{random:a,b,c}}',
      '{{random::a::b::c}}',
      '{{random: a , b , c }}',
      '{{random a,b,c}}',
      '{{random:a::b::c}}',
      '{{pick::a::b::c}}',
    ]) {
      for (let seed = 0; seed < 20; seed++) expect(choices).toContain(expand(text, { readings: { ...readings, seed } }))
    }
    expect(expand('{{random::a,b::a,b}}')).toBe('a,b')
    expect(expand(String.raw`{{random:a\,b}}`)).toBe('a,b')
    expect(expand('{{random::{{char}}::<BOT>}}')).toBe('Lin')
  })

  it('agrees with itself for one seed, differs between seeds, texts and places', () => {
    const text = Array.from({ length: 12 }, () => '{{random:0,1,2,3,4,5,6,7,8,9}}').join('')
    expect(expand(text)).toBe(expand(text))
    expect(new Set(expand(text)).size).toBeGreaterThan(2)
    expect(expand(text)).not.toBe(expand(text, { readings: { ...readings, seed: 8 } }))
    expect(expand(text)).not.toBe(expand(text, { scope: 'world.2' }))
  })

  it('keeps a pick for the tree, whatever the seed and the entity', () => {
    const text = Array.from({ length: 12 }, () => '{{pick:0,1,2,3,4,5,6,7,8,9}}').join('')
    const other = { readings: { ...readings, seed: 99 }, scope: 'elsewhere' }
    expect(expand(text, other)).toBe(expand(text))
    expect(expand(text, { chatKey: testId(5001) })).not.toBe(expand(text))
  })

  it('rolls dice within their range', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e9 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 100 }),
        (seed, dice, sides) => {
          const total = Number(expand(`{{roll ${dice}d${sides}+3}}`, { readings: { ...readings, seed } }))
          expect(total).toBeGreaterThanOrEqual(dice + 3)
          expect(total).toBeLessThanOrEqual(dice * sides + 3)
        },
      ),
    )
    expect(Number(expand('{{roll:6}}'))).toBeLessThanOrEqual(6)
    expect(Number(expand('{{roll::d%}}'))).toBeLessThanOrEqual(100)
    expect(expand('{{roll:nonsense}}{{roll:99999d6}}{{roll:d0}}')).toBe('')
  })
})

describe('any text', () => {
  const piece = fc.constantFrom(
    '{{',
    '}}',
    '{',
    '}',
    '::',
    ',',
    ':',
    'char',
    'user',
    'random',
    'pick',
    'trim',
    '//',
    '\n',
    ' ',
    '\\',
    '<USER>',
    'x',
  )
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))

  it('is expanded the same way twice and without fault', () => {
    fc.assert(
      fc.property(text, (any) => {
        expect(expand(any)).toBe(expand(any))
      }),
    )
  })

  it('stays as it is where nothing in it is a macro', () => {
    const plainText = fc.string().filter((any) => !any.includes('{{') && !any.includes('<'))
    fc.assert(
      fc.property(plainText, (any) => {
        expect(expand(any)).toBe(any)
      }),
    )
  })

  it('is expanded in one pass, however many braces stand open', () => {
    const open = '{{random::'.repeat(20_000)
    expect(expand(open)).toBe(open)
    const nested = `${'{{x '.repeat(5000)}${'}}'.repeat(5000)}`
    expect(expand(nested)).toBe(nested)
  })
})
