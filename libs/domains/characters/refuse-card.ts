import { LingtaiError } from '#contracts'
import { CardError } from './cards/index.ts'

/** Runs what reads or writes a card or lorebook; its CardError becomes a refusal that names the place in the file. */
export function refusingCards<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof CardError)) throw error
    const code = error.code === 'too_large' ? 'payload_too_large' : 'invalid_file'
    throw new LingtaiError(code, error.message, {
      errors: [{ path: error.path === '' ? 'body' : error.path, message: error.message }],
      data: { reason: error.code },
      cause: error,
    })
  }
}
