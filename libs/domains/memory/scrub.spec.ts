import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isEmptyOfMeaning, scrub } from './scrub.ts'

/** A check digit that makes the number pass Luhn. */
function withLuhn(digits: string): string {
  for (let check = 0; check < 10; check++) {
    const whole = `${digits}${check}`
    let sum = 0
    ;[...whole].reverse().forEach((digit, index) => {
      const value = Number(digit) * (index % 2 === 1 ? 2 : 1)
      sum += value > 9 ? value - 9 : value
    })
    if (sum % 10 === 0) return whole
  }
  throw new Error('no check digit')
}

/** What each finder begins with, or nearly ends with, over and over. */
const hostileUnits = [
  ['-----BEGIN ', '-----BEGIN PRIVATE KEY-----', '-----BEGIN PRIVATE KEY----- -----END '],
  ['sk-', 'sk_aaaaaa', 'ghp_', 'xoxa-.', 'AKIA', 'ASIA0000', '-eyJ', '.eyJaaaaaaaa', 'eyJaaaaaaaa.', '-eyJaaaaaaaa.aaaaaaaa'],
  ['bearer ', 'bearer    ', 'bearer a', '=', 'api key ', 'api key:', 'api key:"abcdef', 'private_token=', '密钥是'],
  ['password', 'password is ', 'password:', '密码', '密码改成了', '密码: ', 'is is ', '   ', '"\' ', ':：'],
  ['1', '1 ', '1-', '4111 1111 1111 1111 ', '110105 19491231 002', '123-45-', 'AA11', 'AA11 AAAA', 'DE89 3704 0044 '],
  ['a', '１', '[masked:', '\\u0041', '\\n'],
].flat()

describe('scrub', () => {
  it.each([
    ['my key is sk-abc123def456', 'my key is [masked:key]'],
    ['sk-proj-aB3_d-ef9', '[masked:key]'],
    ['token ghp_0123456789abcdefABCDEF0123456789abcd ok', 'token [masked:key] ok'],
    ['AKIAIOSFODNN7EXAMPLE', '[masked:key]'],
    ['Authorization: Bearer abcdefgh12345678', 'Authorization: Bearer [masked:key]'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_123', '[masked:key]'],
    ['api key = "q8Zr-77xk"', 'api key = "[masked:key]"'],
    ['密钥是abc12345', '密钥是[masked:key]'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- after', '[masked:key] after'],
    ['-----BEGIN PRIVATE KEY-----\ncut short', '[masked:key]'],
    ['the password is hunter2!', 'the password is [masked:password]'],
    ['我的密码是 Qw3rty，别告诉别人', '我的密码是 [masked:password]，别告诉别人'],
    ['PIN: 4821', 'PIN: [masked:password]'],
    ['my card 4111 1111 1111 1111 ok', 'my card [masked:card] ok'],
    ['4111-1111-1111-1111', '[masked:card]'],
    ['４１１１１１１１１１１１１１１１', '[masked:card]'],
    ['4111\u200b1111\u200b1111\u200b1111', '[masked:card]'],
    ['DE89 3704 0044 0532 0130 00', '[masked:card]'],
    ['身份证11010519491231002X号', '身份证[masked:identity]号'],
    ['110105 19491231 002x', '[masked:identity]'],
    ['SSN 123-45-6789.', 'SSN [masked:identity].'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.', '[masked:key].'],
    ['a.eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.-', 'a.[masked:key]'],
    ['{"text":"a line\\nsk-abc123def456"}', '{"text":"a line\\n[masked:key]"}'],
    ['"\\u4e2dghp_0123456789abcdef"', '"\\u4e2d[masked:key]"'],
    ['3782 822463 10005', '[masked:card]'],
    ['6200000000000005', '[masked:card]'],
  ])('masks %s', (text, expected) => {
    expect(scrub(text).text).toBe(expected)
  })

  it.each([
    'I use scikit-learn and the sk-learn docs',
    'the password is important to her',
    '密码是什么？',
    'call me at 13800138000',
    'order 1234567890123456',
    'born 1990-12-31, room 12-34-5678',
    '110105194912310021',
    '周游世界，然后在周末吃夜宵',
    '0000 0000 0000 0000',
    'XX00 1234 5678 9012 3456',
    'since 1764500000005 ms, id 1000000000000008',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0',
    'eyJhbGciOiJIUzI1NiJ9.short.x',
    'a sk-without-any-number here',
  ])('leaves %s alone, byte for byte', (text) => {
    expect(scrub(text)).toEqual({ text, masked: [] })
  })

  it('takes four times as long for a text four times as long, whatever it is made to look for', () => {
    const milliseconds = (text: string): number => {
      const began = performance.now()
      scrub(text)
      return performance.now() - began
    }
    for (const unit of hostileUnits) {
      const shorter = unit.repeat(Math.ceil(10_000 / unit.length))
      const longer = unit.repeat(Math.ceil(40_000 / unit.length))
      const took = [0, 1, 2].map(() => ({ shorter: milliseconds(shorter), longer: milliseconds(longer) }))
      const least = (which: 'shorter' | 'longer'): number => Math.min(...took.map((one) => one[which]))
      // Sixteen times as long where the work grows with the square; some milliseconds for a machine that has other things to do.
      expect(least('longer'), unit).toBeLessThan(8 * least('shorter') + 30)
    }
  })

  it('masks every kind at once and names them', () => {
    const { text, masked } = scrub('key sk-abc123def456, card 4111111111111111, id 11010519491231002X, password: a1b2')
    expect(text).toBe('key [masked:key], card [masked:card], id [masked:identity], password: [masked:password]')
    expect(masked).toEqual(['key', 'card', 'identity', 'password'])
  })

  it('leaves no digits of any card number with separators', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^4[0-9]{14}$/), fc.constantFrom('', ' ', '-', '.'), (head, separator) => {
        const card = withLuhn(head)
        if (/^(\d)\1*$/.test(card)) return
        const shown = (card.match(/.{1,4}/g) ?? []).join(separator)
        expect(scrub(`before ${shown} after`).text).toMatch(/^before \[masked:(card|identity)\] after$/)
      }),
    )
  })

  it('changes nothing on a second pass, whatever the text', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      fc.constantFrom('4111111111111111', 'sk-abc123def456', 'password: x9', '密码是q1w2', '11010519491231002X', ' ', '：', '[masked:key]'),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (parts) => {
        const once = scrub(parts.join('')).text
        expect(scrub(once).text).toBe(once)
      }),
      { numRuns: 500 },
    )
  })
})

describe('isEmptyOfMeaning', () => {
  it('sees through masks and punctuation', () => {
    expect(isEmptyOfMeaning('[masked:key] , [masked:card]!')).toBe(true)
    expect(isEmptyOfMeaning('茶')).toBe(false)
    expect(isEmptyOfMeaning('🍵')).toBe(false)
  })
})
