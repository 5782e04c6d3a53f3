import { useState } from 'react'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge, Loading } from '../../parts/small.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import type { Action } from './action-parts.ts'
import { useApproval, useRunActions } from './data.ts'
import { readObservation } from './observation.ts'
import { reasonText } from './reason-text.ts'
import { Arguments, UntrustedText } from './untrusted-text.tsx'

const signs = { done: '✓', failed: '✗', denied: '⊘', unknown: '?', working: '…', open: '·' }

type LineProps = {
  action: Action
  /** It may be under way this moment. */
  working?: boolean
  children: () => React.ReactNode
}

/** One action inside an answer: what was used and what came of it, on one line; opens to the rest. */
function Line({ action, working = false, children }: LineProps) {
  const words = useWords().actions
  const [open, setOpen] = useState(false)
  const outcome = action.status ?? (working ? 'working' : 'open')
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
  working,
}: {
  action: Action & { approvalId: string | null; observation: string | null }
  working: boolean
}) {
  return (
    <Line action={action} working={working}>
      {() => <Details action={action} approvalId={action.approvalId} observation={action.observation} />}
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
  const found = actions.data?.get(action.actionId)
  return <Details action={action} approvalId={found?.approvalId ?? null} observation={found?.observation ?? null} />
}

function Details({ action, approvalId, observation }: { action: Action; approvalId: string | null; observation: string | null }) {
  const words = useWords().actions
  return (
    <>
      {approvalId === null ? <p className="faint">{words.argumentsNotHere}</p> : <AskedArguments id={approvalId} />}
      {action.status !== null && <ObservationView text={observation} />}
    </>
  )
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
