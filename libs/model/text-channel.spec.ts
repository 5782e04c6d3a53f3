import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSecretMasker, maskSecrets, SECRET_MASK } from './secret-mask.ts'
import { createTextChannel } from './text-channel.ts'

const through = (secrets: string[], pieces: string[]): string[] => {
  const channel = createTextChannel(secrets)
  return [...pieces.map((piece) => channel.push(piece)), channel.flush()]
}
const splitAt = (text: string, cuts: number[]): string[] => {
  const places = [0, ...[...cuts].map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length]
  return places.slice(1).map((to, at) => text.slice(places[at], to))
}

describe('a text channel', () => {
  it('T9 holds a trailing high surrogate back until its other half arrives', () => {
    expect(through([], ['a\ud83d', '\ude00b'])).toEqual(['a', '😀b', ''])
  })

  it('replaces a surrogate that stays alone, and a NUL', () => {
    expect(through([], ['a\ud83d', 'b', '\ude00', '\0', '\ud83d']).join('')).toBe('a\ufffdb\ufffd\ufffd\ufffd')
  })

  it('T9 yields the whole text, well-formed in every piece, wherever it is cut', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.nat(200)), (text, cuts) => {
        const pieces = through(['sk-secret-0123456789'], splitAt(text, cuts))
        expect(pieces.join('')).toBe(text.replaceAll('\0', '\ufffd'))
        for (const piece of pieces) expect(piece.isWellFormed()).toBe(true)
      }),
    )
  })
})

describe('the secret masker', () => {
  const secret = 'sk-live-abcabcabcd'
  const longer = `${secret}-and-more`
  const overlapping = 'abcabcabcdef12'

  it('never lets a secret through, whatever the chunk boundaries', () => {
    const text = `before ${secret} middle ${secret}${secret} after`
    for (let cut = 0; cut <= text.length; cut++) {
      expect(through([secret], [text.slice(0, cut), text.slice(cut)]).join('')).toBe(
        `before ${SECRET_MASK} middle ${SECRET_MASK}${SECRET_MASK} after`,
      )
    }
    expect(through([secret], [...text]).join('')).not.toContain(secret)
  })

  it('gives the same as masking the whole text, for overlapping and nested secrets too', () => {
    const secrets = [secret, longer, overlapping]
    const part = fc.constantFrom(secret, longer, overlapping, 'sk-live-', 'abcabc', 'abcabcabcd', '-and', 'x', ' ', '😀')
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(400)), (parts, cuts) => {
        const text = parts.join('')
        const pieces = through(secrets, splitAt(text, cuts))
        const whole = text.replace(new RegExp([longer, secret, overlapping].join('|'), 'g'), SECRET_MASK)
        expect(pieces.join('')).toBe(whole)
        expect(maskSecrets(text, secrets)).toBe(whole)
      }),
      { numRuns: 2_000 },
    )
  })

  it('holds back no more than what may still become a secret', () => {
    const masker = createSecretMasker([secret])
    expect(masker.push('ordinary words ')).toBe('ordinary words ')
    expect(masker.push('a task')).toBe('a ta')
    expect(masker.push(' goes on')).toBe('sk goes on')
    expect(masker.push('sk-live-')).toBe('')
    expect(masker.flush()).toBe('sk-live-')
  })

  it('takes placeholders for words, not for secrets', () => {
    expect(maskSecrets('ollama runs here', ['ollama'])).toBe('ollama runs here')
  })
})
