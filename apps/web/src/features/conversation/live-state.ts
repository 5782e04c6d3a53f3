import type { InterruptReason, RunStreamEvent } from '#contracts'

/** A piece of an answer while it is made. `part` is its place among the answer's parts. */
export type LivePart =
  | { kind: 'text'; part: number; text: string }
  | { kind: 'reasoning'; part: number; text: string }
  | { kind: 'steer'; commandId: string; text: string | null; used: boolean }

export type Ending =
  | { type: 'run.finished' }
  | { type: 'run.interrupted'; reason: InterruptReason; code: string | null; deltas: number }
  | { type: 'run.failed'; code: string; deltas: number }

/** A run as far as its public events tell it. */
export type LiveState = {
  runId: string
  phase: 'joining' | 'queued' | 'running' | 'ended'
  queuePosition: number
  questionId: string | null
  candidateId: string | null
  parts: readonly LivePart[]
  ending: Ending | null
}

export function initialLiveState(runId: string): LiveState {
  return { runId, phase: 'joining', queuePosition: 0, questionId: null, candidateId: null, parts: [], ending: null }
}

/** Folds one public event into what is shown. Pure; events come once and in order. */
export function foldRunEvent(state: LiveState, event: RunStreamEvent): LiveState {
  switch (event.type) {
    case 'run.requested':
      return { ...state, questionId: event.question_id, candidateId: event.candidate_id }
    case 'run.queued':
      return { ...state, phase: 'queued', queuePosition: event.position }
    case 'run.started':
      return { ...state, phase: 'running', queuePosition: 0 }
    case 'turn.started':
    case 'turn.finished':
      return state
    case 'llm.delta':
      return { ...state, parts: event.segments.reduce(appendSegment, state.parts) }
    case 'steer.received':
      return { ...state, parts: [...state.parts, { kind: 'steer', commandId: event.command_id, text: event.text, used: event.used }] }
    case 'run.finished':
      return { ...state, phase: 'ended', ending: { type: event.type } }
    case 'run.interrupted':
      return { ...state, phase: 'ended', ending: { type: event.type, reason: event.reason, code: event.code, deltas: event.delta_count } }
    case 'run.failed':
      return { ...state, phase: 'ended', ending: { type: event.type, code: event.code, deltas: event.delta_count } }
  }
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
