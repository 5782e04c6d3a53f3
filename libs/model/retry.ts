import { setTimeout as wait } from 'node:timers/promises'
import type { ModelFailure, ModelStreamEvent } from '#kernel/ports/model-gateway'

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

export type RetryArguments = {
  policy: RetryPolicy
  signal: AbortSignal
  random: () => number
  /** Starts try `tryNumber` (from 1). The caller has it recorded as a new effect before it dispatches. */
  dispatch: (tryNumber: number) => AsyncIterable<ModelStreamEvent> | Promise<AsyncIterable<ModelStreamEvent>>
  /** A try failed; the next one starts after `delayMs`, or none does (undefined). Awaited, so that it can be recorded first. */
  onFailed?: (report: { tryNumber: number; failure: ModelFailure; delayMs: number | undefined }) => void | Promise<void>
  /** Rejects when the signal aborts. Default: a timer. */
  sleep?: (delayMs: number, signal: AbortSignal) => Promise<void>
}

const timerSleep = (delayMs: number, signal: AbortSignal): Promise<void> => wait(delayMs, undefined, { signal })

/**
 * One model call with bounded tries. Only a `failed` one is tried again: then nothing was generated and nothing was yielded but `opened`
 * (case S4). The last try's failure is yielded as it is; an abort while waiting yields `failed` with code `aborted`.
 */
export async function* streamWithRetry(args: RetryArguments): AsyncGenerator<ModelStreamEvent> {
  const sleep = args.sleep ?? timerSleep
  for (let tryNumber = 1; ; tryNumber++) {
    let failure: ModelFailure | undefined
    for await (const event of await args.dispatch(tryNumber)) {
      if (event.type === 'failed') failure = event
      else yield event
    }
    if (failure === undefined) return
    const delayMs = args.signal.aborted ? undefined : retryDelayMs(args.policy, { tryNumber, failure, random: args.random })
    await args.onFailed?.({ tryNumber, failure, delayMs })
    if (delayMs === undefined) {
      yield failure
      return
    }
    try {
      await sleep(delayMs, args.signal)
    } catch (error) {
      if (!args.signal.aborted) throw error
      yield { type: 'failed', code: 'aborted', retryable: false }
      return
    }
  }
}
