import { OpenOutcome } from '../actions/open-outcome.tsx'
import { useUnknownEffects } from '../actions/data.ts'
import { useWords } from '../../words/words.ts'
import type { LiveState } from './live-state.ts'
import { askedActions } from './live-state.ts'

/** What an answer that waits waits for, where no question says it already. */
export function SuspendedPart({ state }: { state: LiveState }) {
  const words = useWords().actions
  const effects = useUnknownEffects().data?.items.filter((effect) => effect.run_id === state.runId) ?? []
  if (state.waitsFor === null || askedActions(state).length > 0) return null
  if (state.waitsFor === 'reconcile_required' && effects.length > 0)
    return effects.map((effect) => <OpenOutcome key={effect.id} effect={effect} />)
  return (
    <p className="queue-line" role="status">
      <span className="queue-dot" aria-hidden="true" />
      {words.waitsFor[state.waitsFor]}
    </p>
  )
}
