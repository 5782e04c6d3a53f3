import { createSecretMasker } from './secret-mask.ts'

export type TextChannel = {
  /** Returns what of this delta may be shown now; '' while all of it is held back. */
  push(delta: string): string
  /** The stream ended: the rest. */
  flush(): string
}

/** The bytes a store can hold: a NUL or a lone surrogate becomes U+FFFD (decision 7). */
export const cleanText = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text).toWellFormed()

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/**
 * One channel (text or reasoning) of one stream: a trailing high surrogate waits for its other half (decision 7), known secrets are
 * masked across deltas (decision 37).
 */
export const createTextChannel = (secrets: readonly string[]): TextChannel => {
  const masker = createSecretMasker(secrets)
  let high = ''
  return {
    push: (delta) => {
      if (delta === '') return ''
      let text = high + delta
      high = ''
      if (isHighSurrogate(text.charCodeAt(text.length - 1))) {
        high = text.slice(-1)
        text = text.slice(0, -1)
      }
      return masker.push(cleanText(text))
    },
    flush: () => {
      const rest = masker.push(cleanText(high)) + masker.flush()
      high = ''
      return rest
    },
  }
}
