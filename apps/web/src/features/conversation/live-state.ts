import type { InterruptReason, RunStreamEvent, SuspendReason } from '#contracts'
import type { Action } from '../actions/action-parts.ts'

/** An action of an answer in the making. `observation`: what it brought, as JSON; `approvalId`: the question about it, if there is one. */
export type LiveAction = Action & { kind: 'action'; approvalId: string | null; observation: string | null }

/** A piece of an answer while it is made. `part` is its place among the answer's parts. */
export type LivePart =
  | { kind: 'text'; part: number; text: string }
  | { kind: 'reasoning'; part: number; text: string }
  | { kind: 'steer'; commandId: string; text: string | null; used: boolean }
  | LiveAction

export type Ending =
  | { type: 'run.finished' }
  | { type: 'run.interrupted'; reason: InterruptReason; code: string | null; deltas: number }
  | { type: 'run.failed'; code: string; deltas: number }

/** A run as far as its public events tell it. */
export type LiveState = {
  runId: string
  /** `suspended`: it waits, without its seat, for what `waitsFor` says; that is no end. */
  phase: 'joining' | 'queued' | 'running' | 'suspended' | 'ended'
  waitsFor: SuspendReason | null
  queuePosition: number
  questionId: string | null
  candidateId: string | null
  parts: readonly LivePart[]
  ending: Ending | null
}

export function initialLiveState(runId: string): LiveState {
  return { runId, phase: 'joining', waitsFor: null, queuePosition: 0, questionId: null, candidateId: null, parts: [], ending: null }
}

/** Folds one public event into what is shown. Pure; events come once and in order. */
export function foldRunEvent(state: LiveState, event: RunStreamEvent): LiveState {
  switch (event.type) {
    case 'run.requested':
      return { ...state, questionId: event.question_id, candidateId: event.candidate_id }
    case 'run.queued':
      return { ...state, phase: 'queued', queuePosition: event.position }
    case 'run.started':
      return { ...state, phase: 'running', queuePosition: 0, parts: (event.inherited ?? []).reduce(appendSegment, state.parts) }
    case 'turn.started':
    case 'turn.finished':
      return state
    case 'llm.delta':
      return { ...state, parts: event.segments.reduce(appendSegment, state.parts) }
    case 'steer.received':
      return { ...state, parts: [...state.parts, { kind: 'steer', commandId: event.command_id, text: event.text, used: event.used }] }
    case 'tool.executed':
      return {
        ...state,
        parts: putAction(state.parts, event, { status: event.status, reason: event.reason, observation: event.text }),
      }
    case 'approval.requested':
      return { ...state, parts: putAction(state.parts, event, { approvalId: event.approval_id }) }
    case 'run.suspended':
      return { ...state, phase: 'suspended', waitsFor: event.reason }
    case 'run.resumed':
      return { ...state, phase: 'running', waitsFor: null }
    case 'run.finished':
      return ended(state, { type: event.type })
    case 'run.interrupted':
      return ended(state, { type: event.type, reason: event.reason, code: event.code, deltas: event.delta_count })
    case 'run.failed':
      return ended(state, { type: event.type, code: event.code, deltas: event.delta_count })
  }
}

function ended(state: LiveState, ending: Ending): LiveState {
  return { ...state, phase: 'ended', waitsFor: null, ending }
}

/** What is newly known of an action, where it already stands, else at the end. */
function putAction(
  parts: readonly LivePart[],
  event: { action_id: string; tool: string },
  known: Partial<Omit<LiveAction, 'kind' | 'actionId' | 'tool'>>,
): readonly LivePart[] {
  const at = parts.findIndex((part) => part.kind === 'action' && part.actionId === event.action_id)
  const before = parts[at]
  if (before?.kind === 'action') return parts.with(at, { ...before, ...known })
  const fresh: LiveAction = {
    kind: 'action',
    actionId: event.action_id,
    tool: event.tool,
    status: null,
    reason: null,
    approvalId: null,
    observation: null,
  }
  return [...parts, { ...fresh, ...known }]
}

type Segment = Extract<RunStreamEvent, { type: 'llm.delta' }>['segments'][number]

function appendSegment(parts: readonly LivePart[], segment: Segment): readonly LivePart[] {
  const text = segment.text ?? '' // erased since: nothing is left to show
  const last = parts.at(-1)
  if (last !== undefined && last.kind === segment.kind && last.part === segment.part) {
    return [...parts.slice(0, -1), { ...last, text: last.text + text }]
  }
  return [...parts, { kind: segment.kind, part: segment.part, text }]
}

/** The words of the answer alone, for the screen reader's live region. */
export function spokenText(state: LiveState): string {
  return state.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
}

/** The actions that wait for the owner's answer. */
export function askedActions(state: LiveState): readonly LiveAction[] {
  if (state.phase !== 'suspended' || state.waitsFor !== 'waiting_for_approval') return []
  return state.parts.filter((part) => part.kind === 'action' && part.status === null && part.approvalId !== null) as LiveAction[]
}
