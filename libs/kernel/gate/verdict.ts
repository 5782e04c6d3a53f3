import { Verdict } from '#contracts'

/** A verdict from outside, as it is meant; anything else is forbidden: an unknown value never permits. */
export function readVerdict(value: unknown): Verdict {
  return Verdict.options.find((verdict) => verdict === value) ?? 'forbidden'
}

/** The strictest of several wins. None at all = nobody permitted it = forbidden. */
export function strictestVerdict(given: readonly unknown[]): Verdict {
  if (given.length === 0) return 'forbidden'
  const strictest = Math.max(...given.map((value) => Verdict.options.indexOf(readVerdict(value))))
  return Verdict.options[strictest] ?? 'forbidden'
}
