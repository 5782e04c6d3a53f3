import { useEffect, useRef, useState } from 'react'
import { PartialMark } from '../../parts/small.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import type { WithoutOutcome } from '../actions/action-line.tsx'
import { LiveActionLine } from '../actions/action-line.tsx'
import { QuestionById } from '../actions/question.tsx'
import { GrowingMarkdown } from '../markdown/message-markdown.tsx'
import type { LivePart, LiveState } from './live-state.ts'
import { askedActions, spokenText } from './live-state.ts'
import { Reasoning, SteerLine } from './message-body.tsx'
import { SuspendedPart } from './suspended-part.tsx'
import type { LiveRun } from './use-live-run.ts'

export type WaitingSteer = { commandId: string; text: string }

/** The answer while it is made. It carries the id that its node will have. */
export function LiveMessage({
  live,
  speaker,
  waiting,
  siblings,
}: {
  live: LiveRun
  speaker: string
  waiting: readonly WaitingSteer[]
  siblings: number
}) {
  const words = useWords()
  const { state } = live
  const silent = state.parts.every((part) => part.kind === 'steer')
  const asked = askedActions(state)
  // Nothing is said yet, or an action was done and the next words are being thought of.
  const works = state.phase !== 'ended' && state.phase !== 'suspended' && (silent || state.parts.at(-1)?.kind === 'action')
  const interrupted = state.ending !== null && state.ending.type !== 'run.finished'
  return (
    <article
      className="message message-answer message-live"
      aria-label={words.talk.answering(speaker)}
      aria-busy={state.phase !== 'ended'}
      data-testid={silent ? testIds.liveWaiting : testIds.liveMessage}
      data-node-id={state.candidateId ?? undefined}
      data-kind="candidate"
      data-phase={state.phase}
    >
      <header className="message-head">
        <span className="speaker">{speaker}</span>
        {interrupted && !silent && <PartialMark />}
        {siblings > 0 && (
          <span className="faint" data-testid={testIds.candidateCount}>
            {words.talk.candidate(siblings + 1, siblings + 1)}
          </span>
        )}
      </header>
      <div className="message-text" data-testid={testIds.messageText}>
        {state.parts.map((part, index) => (
          // Parts are only ever added at the end.
          <LivePartView
            key={index}
            part={part}
            isLast={index === state.parts.length - 1 && state.phase === 'running'}
            without={withoutOutcome(state)}
            isAsked={part.kind === 'action' && asked.includes(part)}
            speaker={speaker}
          />
        ))}
        {state.phase === 'suspended' && <SuspendedPart state={state} />}
        {works && <p className="thinking">{words.talk.thinking}</p>}
        {waiting.map((steer) => (
          <SteerLine key={steer.commandId} text={steer.text} note={words.talk.interjectionWaits} waiting />
        ))}
      </div>
    </article>
  )
}

/** An action of which nothing came yet is under way while the run goes on; where the run waits for the truth about it, nobody knows. */
function withoutOutcome({ phase, waitsFor }: LiveState): WithoutOutcome {
  if (phase === 'suspended') return waitsFor === 'reconcile_required' || waitsFor === 'waiting_for_effect' ? 'unknown' : 'open'
  return phase === 'ended' ? 'open' : 'working'
}

function LivePartView({
  part,
  isLast,
  without,
  isAsked,
  speaker,
}: {
  part: LivePart
  isLast: boolean
  without: WithoutOutcome
  isAsked: boolean
  speaker: string
}) {
  const words = useWords()
  switch (part.kind) {
    case 'text':
      return <GrowingMarkdown text={part.text} growing={isLast} />
    case 'reasoning':
      return <Reasoning text={part.text} open={isLast} />
    case 'steer':
      return <SteerLine text={part.text ?? words.talk.erased} note={part.used ? words.talk.interjected : words.talk.interjectionUnused} />
    case 'action':
      return isAsked && part.approvalId !== null ? (
        <QuestionById id={part.approvalId} name={speaker} />
      ) : (
        <LiveActionLine action={part} without={without} />
      )
  }
}

const sentence = /[\s\S]*?[.!?。！？…\n]+["'”’」』)]*\s*/y

/** Tells a screen reader of the answer, sentence by sentence, so that it is not interrupted by every piece. */
export function LiveRegion({ live, speaker }: { live: LiveRun | null; speaker: string }) {
  const words = useWords()
  const [said, setSaid] = useState<readonly string[]>([])
  const told = useRef({ runId: '', upTo: 0, ended: false, asked: '' })
  useEffect(() => {
    if (live === null) return
    const { state } = live
    if (told.current.runId !== state.runId) {
      told.current = { runId: state.runId, upTo: 0, ended: false, asked: '' }
      setSaid([words.talk.answering(speaker)])
    }
    const [question] = askedActions(state)
    if (question !== undefined && question.actionId !== told.current.asked) {
      told.current.asked = question.actionId
      setSaid((before) => [...before.slice(-3), words.actions.questionSpoken(speaker, question.tool)])
    }
    const text = spokenText(state)
    sentence.lastIndex = told.current.upTo
    const match = sentence.exec(text)
    if (match !== null) {
      const until = state.phase === 'ended' ? text.length : lastSentenceEnd(text, sentence.lastIndex)
      const next = text.slice(told.current.upTo, until)
      told.current.upTo = until
      setSaid((before) => [...before.slice(-3), next])
    }
    if (state.phase === 'ended' && !told.current.ended) {
      told.current.ended = true
      const rest = text.slice(told.current.upTo)
      told.current.upTo = text.length
      setSaid((before) => [...before.slice(-3), ...(rest.trim() === '' ? [] : [rest]), words.talk.answered(speaker)])
    }
  }, [live, speaker, words])
  return (
    <div className="visually-hidden" role="log" aria-live="polite" aria-atomic="false">
      {said.map((text, index) => (
        <p key={`${index} ${text.slice(0, 20)}`}>{text}</p>
      ))}
    </div>
  )
}

function lastSentenceEnd(text: string, from: number): number {
  let end = from
  sentence.lastIndex = from
  while (sentence.test(text)) end = sentence.lastIndex
  return end
}
