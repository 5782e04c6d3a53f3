import { useState } from 'react'
import { runApi } from '../../api/endpoints.ts'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge, Loading } from '../../parts/small.tsx'
import { useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import type { Action } from './action-parts.ts'
import { calledWith } from './action-parts.ts'
import { useApproval, useRunActions } from './data.ts'
import { readObservation } from './observation.ts'
import { reasonText } from './reason-text.ts'
import { Arguments, UntrustedText } from './untrusted-text.tsx'

const signs = { done: '✓', failed: '✗', denied: '⊘', unknown: '?', working: '…', open: '·' }

/** What there is to say of an action without an outcome. */
export type WithoutOutcome = 'working' | 'unknown' | 'open'

type LineProps = {
  action: Action
  without?: WithoutOutcome
  children: () => React.ReactNode
}

/** One action inside an answer: what was used and what came of it, on one line; opens to the rest. */
function Line({ action, without = 'open', children }: LineProps) {
  const words = useWords().actions
  const [open, setOpen] = useState(false)
  const outcome = action.status ?? without
  const reason = action.reason === null || action.status === 'done' ? null : reasonText(words, action.reason)
  return (
    <details
      className={`action-line action-${outcome}`}
      data-testid={testIds.actionLine}
      data-status={outcome}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        <span className="action-sign" aria-hidden="true">
          {signs[outcome]}
        </span>
        <code>{action.tool === '' ? words.noTool : action.tool}</code> <span className="action-outcome">{words.line[outcome]}</span>
        {reason !== null && <span className="action-reason"> {reason}</span>}
      </summary>
      {open && <div className="action-body">{children()}</div>}
    </details>
  )
}

/** An action of an answer in the making: the stream has told all that there is. */
export function LiveActionLine({
  action,
  without,
}: {
  action: Action & { approvalId: string | null; observation: string | null }
  without: WithoutOutcome
}) {
  const words = useWords().actions
  return (
    <Line action={action} without={without}>
      {() => (
        <Details action={action} observation={action.observation}>
          {action.approvalId === null ? <p className="faint">{words.argumentsLater}</p> : <AskedArguments id={action.approvalId} />}
        </Details>
      )}
    </Line>
  )
}

/** An action of a stored answer: the rest is read back from the stream of its run when somebody wants to see it. */
export function StoredActionLine({ action, runId }: { action: Action; runId: string | null }) {
  return <Line action={action}>{() => <ReadBack action={action} runId={runId} />}</Line>
}

function ReadBack({ action, runId }: { action: Action; runId: string | null }) {
  const actions = useRunActions(runId)
  if (runId !== null && actions.data === undefined)
    return actions.problem === null ? <Loading /> : <ProblemNote problem={actions.problem} onRetry={actions.reload} />
  const found = actions.data?.get(action.actionId) ?? { observation: null, approvalId: null }
  return (
    <Details action={action} observation={found.observation}>
      {found.approvalId !== null ? (
        <AskedArguments id={found.approvalId} />
      ) : (
        runId !== null && <RecordedArguments runId={runId} actionId={action.actionId} />
      )}
    </Details>
  )
}

function Details({ action, observation, children }: { action: Action; observation: string | null; children: React.ReactNode }) {
  return (
    <>
      {children}
      {action.status !== null && <ObservationView text={observation} />}
    </>
  )
}

/** Nobody was asked about it: what it was called with stands in the request that came after it. */
function RecordedArguments({ runId, actionId }: { runId: string; actionId: string }) {
  const words = useWords().actions
  const explanation = useResource(`explanation:${runId}:last`, () => runApi.explanation(runId))
  if (explanation.data === undefined)
    return explanation.problem === null ? <Loading /> : <ProblemNote problem={explanation.problem} onRetry={explanation.reload} />
  const found = calledWith(explanation.data.entities, actionId)
  return found === null ? <p className="faint">{words.argumentsNotHere}</p> : <Arguments text={found} />
}

function AskedArguments({ id }: { id: string }) {
  const approval = useApproval(id)
  if (approval.data === undefined)
    return approval.problem === null ? <Loading /> : <ProblemNote problem={approval.problem} onRetry={approval.reload} />
  return <Arguments text={approval.data.arguments} />
}

/** What an action brought, with its source and how far it is to be believed; as letters, never as markup. */
function ObservationView({ text }: { text: string | null }) {
  const words = useWords().actions
  const format = useFormat()
  if (text === null) return <p className="faint">{words.observationNone}</p>
  const observed = readObservation(text)
  if (observed === null) return <UntrustedText text={text} label={words.observation} />
  return (
    <div className="arguments">
      <p className="arguments-head">
        <span>{words.observation}</span> <span className="faint">{words.observationFrom(observed.source)}</span>{' '}
        {observed.at !== '' && (
          <time className="faint" dateTime={observed.at}>
            {format.clock(observed.at)}
          </time>
        )}{' '}
        <Badge tone={observed.trust === 'untrusted' ? 'amber' : 'plain'}>{words.trust[observed.trust]}</Badge>{' '}
        {observed.licence !== null && <span className="faint">{words.observationLicence(observed.licence)}</span>}{' '}
        {observed.truncated && <Badge tone="amber">{words.truncated}</Badge>}
      </p>
      <UntrustedText text={observed.text} label={words.observation} testId={testIds.observation} />
    </div>
  )
}
