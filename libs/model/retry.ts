import type { ModelFailure } from '#kernel/ports/model-gateway'

/** Bounds of trying again. Times in ms. `maxTries` counts the first try too. */
export type RetryPolicy = { maxTries: number; baseDelayMs: number; maxDelayMs: number; maxRetryAfterMs: number }

export const DEFAULT_RETRY_POLICY: RetryPolicy = { maxTries: 3, baseDelayMs: 500, maxDelayMs: 8_000, maxRetryAfterMs: 30_000 }

/**
 * How long to wait before the next try; undefined = give up. Exponential, jittered over the upper half, from `random` in [0, 1).
 * A provider's Retry-After is never undercut; where it asks for more than the cap, we give up instead of coming back early.
 */
export const retryDelayMs = (
  policy: RetryPolicy,
  state: { tryNumber: number; failure: ModelFailure; random: () => number },
): number | undefined => {
  if (!state.failure.retryable || state.tryNumber >= policy.maxTries) return undefined
  const ceiling = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (state.tryNumber - 1))
  const delay = Math.round(ceiling / 2 + (ceiling / 2) * state.random())
  const asked = state.failure.retryAfterMs ?? 0
  return asked > policy.maxRetryAfterMs ? undefined : Math.max(delay, asked)
}
