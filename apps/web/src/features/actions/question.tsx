import { useState } from 'react'
import type { ApprovalView, DecideApproval } from '#contracts'
import { ApiProblem } from '../../api/client.ts'
import { actionApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { put } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { ActionFacts } from './action-facts.tsx'
import { actionsChanged, useApproval } from './data.ts'
import { reasonText } from './reason-text.ts'
import { Arguments } from './untrusted-text.tsx'

/** The question about one action, read by its id. */
export function QuestionById({ id, name }: { id: string; name: string }) {
  const approval = useApproval(id)
  if (approval.data === undefined)
    return approval.problem === null ? <Loading /> : <ProblemNote problem={approval.problem} onRetry={approval.reload} />
  return <Question approval={approval.data} name={name} />
}

/** What a character asks to do, with exactly which arguments, and the owner's yes or no to just that. */
export function Question({ approval, name, children }: { approval: ApprovalView; name: string; children?: React.ReactNode }) {
  const words = useWords().actions
  const format = useFormat()
  const { state } = approval
  return (
    <section className="question" aria-label={words.questionTitle(name)} data-testid={testIds.question} data-state={state}>
      <p className="question-title">{words.questionTitle(name)}</p>
      <ActionFacts tool={approval.tool} capability={approval.capability} reason={reasonText(words, approval.reason)} />
      <Arguments text={approval.arguments} />
      <p className="faint">{words.argumentsWarning}</p>
      {state === 'pending' && (
        <p className="faint">{words.until(format.moment(approval.expires_at), format.relative(approval.expires_at))}</p>
      )}
      <Decision approval={approval} />
      {children}
    </section>
  )
}

function Decision({ approval }: { approval: ApprovalView }) {
  const words = useWords().actions
  const [sending, setSending] = useState<DecideApproval['decision'] | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  const decide = async (decision: DecideApproval['decision']) => {
    setSending(decision)
    setProblem(null)
    try {
      put(`approval:${approval.id}`, await actionApi.decide(approval.id, { decision, arguments_hash: approval.arguments_hash }))
    } catch (error) {
      setProblem(error)
    } finally {
      setSending(null)
      // Whatever came of it, what stands now is read again.
      actionsChanged()
    }
  }
  return (
    <>
      {problem !== null && <DecisionProblem problem={problem} />}
      {approval.state === 'pending' ? (
        <div className="button-row">
          <Button
            look="strong"
            busy={sending === 'approve'}
            // What cannot be read cannot be allowed.
            disabled={sending !== null || approval.arguments === null}
            testId={testIds.allow}
            onClick={() => void decide('approve')}
          >
            {words.allow}
          </Button>
          <Button busy={sending === 'refuse'} disabled={sending !== null} testId={testIds.refuse} onClick={() => void decide('refuse')}>
            {words.refuse}
          </Button>
        </div>
      ) : (
        <p className="question-state" role="status">
          {words.stateTexts[approval.state]} {(approval.state === 'approved' || approval.state === 'refused') && words.goesOn}
        </p>
      )}
    </>
  )
}

/** The refusals that a decision may meet, as what they mean here. */
function DecisionProblem({ problem }: { problem: unknown }) {
  const words = useWords().actions.problems
  const known = problem instanceof ApiProblem && Object.hasOwn(words, problem.code) ? words[problem.code as keyof typeof words] : null
  if (known === null) return <ProblemNote problem={problem} />
  return (
    <p className="problem" role="alert" data-testid={testIds.problem}>
      {known}
    </p>
  )
}
