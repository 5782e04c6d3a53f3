import { Link, paths, usePlace } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useActionWatch, usePendingApprovals, useShownRun, useUnknownEffects } from './data.ts'
import { useCharacterName } from './waiting.tsx'

/** Says wherever one is that a character waits for an answer; silent where the question itself is in view. */
export function WaitingHint() {
  const words = useWords().actions
  const { route } = usePlace()
  const shownRun = useShownRun()
  const nameOf = useCharacterName()
  useActionWatch()
  const questions = (usePendingApprovals().data?.items ?? []).filter((one) => one.run_id !== shownRun)
  const open = (useUnknownEffects().data?.items ?? []).filter((one) => one.run_id !== shownRun)
  const [first] = questions
  return (
    // Always there, so that a screen reader hears what comes into it.
    <div role="status">
      {route.name !== 'memory' && questions.length + open.length > 0 && (
        <div className="waiting-hint" data-testid={testIds.waitingHint}>
          <span className="queue-dot" aria-hidden="true" />
          <span>
            {first !== undefined &&
              (questions.length === 1 ? words.hintOne(nameOf(first.character_id), first.tool) : words.hintMany(questions.length))}{' '}
            {open.length > 0 && words.hintUnknown(open.length)}
          </span>
          <Link to={paths.memory}>{words.hintLook}</Link>
        </div>
      )}
    </div>
  )
}
