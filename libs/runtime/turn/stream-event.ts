import type { EventPayload, EventRecord, RunStreamEvent } from '#contracts'

/** Texts that a public event refers to; null = erased. */
export type StreamTexts = {
  segment(ordinal: number): { kind: 'text' | 'reasoning'; part: number; text: string | null }
  content(contentId: string): string | null
}

/** The public form of a run's event, or null when readers of the stream do not see it (spec/6 "SSE"). */
export function toStreamEvent(input: { runId: string; record: EventRecord; prevSeq: number; texts: StreamTexts }): RunStreamEvent | null {
  const { record, texts } = input
  const base = { run_id: input.runId, seq: record.seq, prev_seq: input.prevSeq, at: record.at }
  switch (record.type) {
    case 'run.requested': {
      const { tree_id, question_id, candidate_id } = record.payload as EventPayload<'run.requested'>
      return { ...base, type: record.type, tree_id, question_id, candidate_id }
    }
    case 'run.queued':
      return { ...base, type: record.type, position: (record.payload as EventPayload<'run.queued'>).position }
    case 'run.started': {
      const { inherited } = record.payload as EventPayload<'run.started'>
      const segments = Array.from({ length: inherited?.segments ?? 0 }, (_, ordinal) => texts.segment(ordinal))
      return { ...base, type: record.type, ...(inherited ? { inherited: segments } : {}) }
    }
    case 'turn.started':
    case 'turn.finished':
      return { ...base, type: record.type, turn: (record.payload as EventPayload<'turn.started'>).turn }
    case 'llm.delta': {
      const { first_segment, segments } = record.payload as EventPayload<'llm.delta'>
      return { ...base, type: record.type, segments: Array.from({ length: segments }, (_, index) => texts.segment(first_segment + index)) }
    }
    case 'steer.received': {
      const { command_id, content_id, used } = record.payload as EventPayload<'steer.received'>
      return { ...base, type: record.type, command_id, used, text: texts.content(content_id) }
    }
    case 'tool.executed': {
      const { action_id, tool, status, reason, content_id } = record.payload as EventPayload<'tool.executed'>
      const text = content_id === null ? null : texts.content(content_id)
      return { ...base, type: record.type, action_id, tool, status, reason, text }
    }
    case 'approval.requested': {
      const { approval_id, action_id, tool, expires_at } = record.payload as EventPayload<'approval.requested'>
      return { ...base, type: record.type, approval_id, action_id, tool, expires_at }
    }
    case 'run.suspended':
      return { ...base, type: record.type, reason: (record.payload as EventPayload<'run.suspended'>).reason }
    case 'run.resumed':
      return { ...base, type: record.type }
    case 'run.finished':
      return { ...base, type: record.type, ...endOf(record.payload as EventPayload<'run.finished'>), partial: false }
    case 'run.interrupted': {
      const payload = record.payload as EventPayload<'run.interrupted'>
      return {
        ...base,
        type: record.type,
        reason: payload.reason,
        code: payload.code,
        ...endOf(payload),
        partial: payload.candidate_id !== null,
      }
    }
    case 'run.failed': {
      const payload = record.payload as EventPayload<'run.failed'>
      return { ...base, type: record.type, code: payload.code, ...endOf(payload), partial: payload.candidate_id !== null }
    }
    default:
      return null
  }
}

function endOf(payload: { candidate_id: string | null; delta_count: number }) {
  return { candidate_id: payload.candidate_id, delta_count: payload.delta_count }
}
