/** One scale for every decision, mildest first (spec/2): judged by oneself, within rules, ask the owner, forbidden. */
export const verdicts = ['autonomous', 'rule_bound', 'ask', 'forbidden'] as const
export type Verdict = (typeof verdicts)[number]

/** A verdict from outside, as it is meant; anything else is forbidden: an unknown value never permits. */
export function readVerdict(value: unknown): Verdict {
  return verdicts.find((verdict) => verdict === value) ?? 'forbidden'
}

/** The strictest of several wins. None at all = nobody permitted it = forbidden. */
export function strictestVerdict(given: readonly unknown[]): Verdict {
  if (given.length === 0) return 'forbidden'
  const strictest = Math.max(...given.map((value) => verdicts.indexOf(readVerdict(value))))
  return verdicts[strictest] ?? 'forbidden'
}
