const DAY_MS = 86_400_000

/** How much vitality and priority may take from a score: bounded, so that they never hide a strong match (spec/5 "Recall"). */
export const VITALITY_SHARE = 0.06
export const PRIORITY_SHARE = 0.04

/** Past this many half-lives a memory is as faded as it gets; keeps the power within a double. */
export const FADED_HALF_LIVES = 60

/** Days after which vitality has halved. */
export const HALF_LIFE_DAYS = 120

export type Life = { eventAt: Date; lastHitAt: Date | null; now: Date; halfLifeDays: number }

/** 2^(−Δdays / half-life), counted from the event or the last recall, whichever is later (case R21). In (0, 1]; 1 for the future. */
export function vitality({ eventAt, lastHitAt, now, halfLifeDays }: Life): number {
  const since = Math.max(eventAt.getTime(), lastHitAt?.getTime() ?? Number.NEGATIVE_INFINITY)
  const days = Math.max(0, (now.getTime() - since) / DAY_MS)
  return 2 ** -Math.min(days / halfLifeDays, FADED_HALF_LIVES)
}

/** Soft factor of a score, in [(1 − VITALITY_SHARE)(1 − PRIORITY_SHARE), 1]. Both arguments in [0, 1]. */
export function softFactor({ vitality: alive, priority }: { vitality: number; priority: number }): number {
  return (1 - VITALITY_SHARE * (1 - alive)) * (1 - PRIORITY_SHARE * (1 - priority))
}
