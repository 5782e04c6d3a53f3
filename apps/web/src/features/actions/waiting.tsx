import { runApi } from '../../api/endpoints.ts'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Link, paths } from '../../routing/router.tsx'
import { useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import { useCharacters } from '../characters/data.ts'
import { usePendingApprovals, useUnknownEffects } from './data.ts'
import { OpenOutcome } from './open-outcome.tsx'
import { Question } from './question.tsx'

export function useCharacterName(): (id: string) => string {
  const words = useWords().actions
  const characters = useCharacters().data?.items ?? []
  return (id) => characters.find((character) => character.id === id)?.name ?? words.somebody
}

/** What waits for the owner in person: questions about actions, and actions whose outcome nobody knows. */
export function WaitingActions({ characterId }: { characterId: string | null }) {
  const words = useWords().actions
  const nameOf = useCharacterName()
  const approvals = usePendingApprovals()
  const effects = useUnknownEffects()
  const isMeant = (one: { character_id: string }) => characterId === null || one.character_id === characterId
  const questions = (approvals.data?.items ?? []).filter(isMeant)
  const open = (effects.data?.items ?? []).filter(isMeant)
  return (
    <>
      {approvals.problem !== null && <ProblemNote problem={approvals.problem} onRetry={approvals.reload} />}
      {questions.length > 0 && (
        <section>
          <h3>{words.questionsTitle}</h3>
          <ul className="cards">
            {questions.map((approval) => (
              <li key={approval.id}>
                <Question approval={approval} name={nameOf(approval.character_id)}>
                  <ConversationLink runId={approval.run_id} />
                </Question>
              </li>
            ))}
          </ul>
        </section>
      )}
      {effects.problem !== null && <ProblemNote problem={effects.problem} onRetry={effects.reload} />}
      {open.length > 0 && (
        <section>
          <ul className="cards">
            {open.map((effect) => (
              <li key={effect.id}>
                <OpenOutcome effect={effect}>
                  <ConversationLink runId={effect.run_id} />
                </OpenOutcome>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

/** Whether `WaitingActions` has anything to show. */
export function useHasWaitingActions(characterId: string | null): boolean {
  const all = [...(usePendingApprovals().data?.items ?? []), ...(useUnknownEffects().data?.items ?? [])]
  return all.some((one) => characterId === null || one.character_id === characterId)
}

function ConversationLink({ runId }: { runId: string }) {
  const words = useWords().actions
  const run = useResource(`run:${runId}`, () => runApi.read(runId)).data
  if (run === undefined || run.tree_id === null) return null
  return (
    <p>
      <Link to={run.question_id === null ? paths.tree(run.tree_id) : paths.node(run.tree_id, run.question_id)}>{words.goThere}</Link>
    </p>
  )
}
