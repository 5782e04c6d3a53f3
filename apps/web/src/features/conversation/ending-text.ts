import type { RunState } from '#contracts'
import type { Words } from '../../words/en.ts'

/** Why a run did not finish, in the reader's words; null where it did, or where nothing more is known. */
export function endingText(words: Words, state: RunState, reason: string | null): string | null {
  if (state === 'interrupted')
    return reason !== null && Object.hasOwn(words.talk.ended, reason) ? words.talk.ended[reason as keyof Words['talk']['ended']] : null
  if (state === 'failed')
    return reason !== null && Object.hasOwn(words.talk.failed, reason)
      ? words.talk.failed[reason as keyof Words['talk']['failed']]
      : words.talk.failed.other
  return null
}
