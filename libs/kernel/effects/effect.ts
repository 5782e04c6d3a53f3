/**
 * States of an effect, from its intent to its settlement (K3). `executing` and `unknown` are never sent again; `denied`: taken back before
 * it was sent.
 */
export type EffectState =
  'intent' | 'executing' | 'done' | 'failed' | 'denied' | 'unknown' | 'reconciled_done' | 'reconciled_failed' | 'abandoned'

export type EffectEvent = 'claimed' | 'done' | 'failed' | 'unknown' | 'denied' | 'proved_done' | 'proved_failed' | 'abandoned'

/** What may follow what. Anything else is late or wrong and changes nothing (case E16). */
const transitions: Readonly<Record<EffectState, Partial<Record<EffectEvent, EffectState>>>> = Object.freeze({
  // Proved before it was sent by us: another of our processes did it under the same key.
  intent: { claimed: 'executing', denied: 'denied', failed: 'failed', proved_done: 'done' },
  executing: { done: 'done', failed: 'failed', unknown: 'unknown' },
  unknown: { proved_done: 'reconciled_done', proved_failed: 'reconciled_failed', abandoned: 'abandoned' },
  done: {},
  failed: {},
  denied: {},
  reconciled_done: {},
  reconciled_failed: {},
  abandoned: {},
})

/** The state after an event, or null where the event changes nothing. Pure. */
export function nextEffectState(state: EffectState, event: EffectEvent): EffectState | null {
  return transitions[state][event] ?? null
}

/** The states from which an event leads on. */
export function statesBefore(event: EffectEvent): EffectState[] {
  return (Object.keys(transitions) as EffectState[]).filter((state) => transitions[state][event] !== undefined)
}

/** Nothing more can become of it. */
export function isSettled(state: EffectState): boolean {
  return Object.keys(transitions[state]).length === 0
}

/** It happened, as far as anybody will ever know. */
export function hasHappened(state: EffectState): boolean {
  return state === 'done' || state === 'reconciled_done'
}
