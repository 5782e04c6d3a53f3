import { describe, expect, it } from 'vitest'
import { keptArguments, parsedArguments } from './action-contents.ts'
import { maskedArguments } from './masked-arguments.ts'

/** Knows a secret by its look, and a password by the word before it. */
const scrub = (text: string): string => text.replaceAll(/secret\d+|(?<=pin: )\d+/g, '[masked:key]')

describe('arguments', () => {
  it('keep everything that is no secret as it was given', () => {
    const given = { since: 1_764_500_000_005, ratio: 0.1, flag: true, nothing: null, nested: { list: [1, 'a "quoted"\ntext', []] }, '': '' }
    expect(maskedArguments(given, scrub)).toEqual(given)
  })

  it('lose a secret in a text, in a number, in a name and at any depth, and stay JSON', () => {
    const given = { text: 'it is secret1.', pin: 4821, list: [{ secret2: 'a' }, 'secret3'], deep: { pin: '77', said: 'pin' } }
    expect(maskedArguments(given, scrub)).toEqual({
      text: 'it is [masked:key].',
      pin: '[masked:key]',
      list: [{ '[masked:key]': 'a' }, '[masked:key]'],
      deep: { pin: '[masked:key]', said: 'pin' },
    })
  })

  it('leave nothing of a secret that begins in a name and ends in its value', () => {
    expect(maskedArguments({ 'BEGIN a': 'b END' }, (text) => text.replace(/BEGIN.*/, '[masked:key]'))).toEqual({
      '[masked:key]': '[masked:key]',
    })
  })

  it('are kept in one spelling, masked, and can be read again', () => {
    const kept = keptArguments('{ "b": "secret1", "a": "line\\nsecret2" }', scrub)
    expect(kept).toBe('{"a":"line\\n[masked:key]","b":"[masked:key]"}')
    expect(parsedArguments(kept)).toEqual({ a: 'line\n[masked:key]', b: '[masked:key]' })
    expect(keptArguments(' ', scrub)).toBe('{}')
  })

  it.each([
    'no JSON with secret1',
    '["secret1"]',
    '{"n":12345678901234567890,"t":"secret1"}',
    '{"t":"secret1\ud800\0"',
    '[['.repeat(50_000),
  ])('that no tool can be given are kept as a masked text: %.20s', (text) => {
    const kept = keptArguments(text, scrub)
    expect(kept).not.toMatch(/secret\d|\0/)
    expect(kept.isWellFormed()).toBe(true)
    expect(parsedArguments(kept)).toBeNull()
  })
})
