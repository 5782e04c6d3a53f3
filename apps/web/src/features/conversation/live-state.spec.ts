import type { RunStreamEvent } from '#contracts'
import { describe, expect, it } from 'vitest'
import { foldRunEvent, initialLiveState, spokenText } from './live-state.ts'

const runId = '0196f000-0000-7000-8000-000000000001'
const commandId = '0196f000-0000-7000-8000-000000000002'

function fold(events: readonly RunStreamEvent[]) {
  return events.reduce(foldRunEvent, initialLiveState(runId))
}

let seq = 0
function at() {
  seq += 1
  return { run_id: runId, seq, prev_seq: seq - 1, at: '2026-11-29T00:00:00.000Z' }
}
function delta(kind: 'text' | 'reasoning', part: number, text: string | null): RunStreamEvent {
  return { ...at(), type: 'llm.delta', segments: [{ kind, part, text }] }
}

describe('foldRunEvent', () => {
  it('joins segments of one part and keeps parts in order', () => {
    const state = fold([delta('reasoning', 0, 'think'), delta('text', 1, 'Good '), delta('text', 1, 'evening'), delta('text', 2, '!')])
    expect(state.parts).toEqual([
      { kind: 'reasoning', part: 0, text: 'think' },
      { kind: 'text', part: 1, text: 'Good evening' },
      { kind: 'text', part: 2, text: '!' },
    ])
    expect(spokenText(state)).toBe('Good evening!')
  })

  it('shows an interjection where it took effect, and text after it as a new piece', () => {
    const steer: RunStreamEvent = { ...at(), type: 'steer.received', command_id: commandId, text: 'wait', used: true }
    const state = fold([delta('text', 0, 'a'), steer, delta('text', 0, 'b')])
    expect(state.parts.map((part) => part.kind)).toEqual(['text', 'steer', 'text'])
  })

  it('shows nothing for an erased segment', () => {
    expect(spokenText(fold([delta('text', 0, 'a'), delta('text', 0, null), delta('text', 0, 'b')]))).toBe('ab')
  })

  it('goes from the line to the seat to the end', () => {
    const queued = fold([{ ...at(), type: 'run.queued', position: 2 }])
    expect([queued.phase, queued.queuePosition]).toEqual(['queued', 2])
    const running = foldRunEvent(queued, { ...at(), type: 'run.started' })
    expect([running.phase, running.queuePosition]).toEqual(['running', 0])
    const ended = foldRunEvent(running, {
      ...at(),
      type: 'run.interrupted',
      reason: 'cancelled',
      code: null,
      candidate_id: null,
      delta_count: 0,
      partial: false,
    })
    expect(ended.phase).toBe('ended')
    expect(ended.ending).toEqual({ type: 'run.interrupted', reason: 'cancelled', code: null, deltas: 0 })
  })
})
