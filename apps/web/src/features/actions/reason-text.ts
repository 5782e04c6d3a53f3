import type { ActionWords } from '../../words/actions-en.ts'

/** A reason in the reader's words; one that has none yet is named by its code. */
export function reasonText(words: ActionWords, code: string): string {
  return Object.hasOwn(words.reasons, code) ? words.reasons[code as keyof ActionWords['reasons']] : words.reasonCode(code)
}
