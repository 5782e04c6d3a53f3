import type { RunStreamEvent } from '#contracts'
import { describe, expect, it } from 'vitest'
import { askedActions, foldRunEvent, initialLiveState, spokenText } from './live-state.ts'

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

  describe('an action', () => {
    const action = { action_id: 'a', tool: 'mail.send' }
    const asked: RunStreamEvent = {
      ...at(),
      ...action,
      type: 'approval.requested',
      approval_id: 'q',
      expires_at: '2026-11-30T00:00:00.000Z',
    }
    const waits: RunStreamEvent = { ...at(), type: 'run.suspended', reason: 'waiting_for_approval' }
    const executed: RunStreamEvent = { ...at(), ...action, type: 'tool.executed', status: 'done', reason: null, text: '{}' }

    it('stands where it was proposed, from the question to its outcome, and cuts the words in two', () => {
      const state = fold([delta('text', 0, 'a'), asked, waits, { ...at(), type: 'run.resumed' }, executed, delta('text', 3, 'b')])
      expect(state.parts).toEqual([
        { kind: 'text', part: 0, text: 'a' },
        {
          kind: 'action',
          actionId: 'a',
          tool: 'mail.send',
          status: 'done',
          reason: null,
          approvalId: 'q',
          observation: '{}',
        },
        { kind: 'text', part: 3, text: 'b' },
      ])
      expect([state.phase, state.waitsFor]).toEqual(['running', null])
    })

    it('is asked about only while the run waits for the answer', () => {
      const waiting = fold([asked, waits])
      expect([waiting.phase, waiting.ending]).toEqual(['suspended', null])
      expect(askedActions(waiting).map(({ approvalId }) => approvalId)).toEqual(['q'])
      expect(askedActions(foldRunEvent(waiting, { ...at(), type: 'run.resumed' }))).toEqual([])
      const unknown: RunStreamEvent = { ...at(), type: 'run.suspended', reason: 'reconcile_required' }
      expect(askedActions(fold([asked, waits, { ...at(), type: 'run.resumed' }, unknown]))).toEqual([])
    })

    it('without a question shows its outcome alone', () => {
      const denied: RunStreamEvent = { ...at(), ...action, type: 'tool.executed', status: 'denied', reason: 'not_granted', text: null }
      expect(fold([denied]).parts).toMatchObject([{ kind: 'action', status: 'denied', reason: 'not_granted', approvalId: null }])
    })

    it('leaves nothing to wait for when the run ends meanwhile', () => {
      const end = { candidate_id: null, delta_count: 0, partial: false }
      const state = fold([asked, waits, { ...at(), type: 'run.interrupted', reason: 'cancelled', code: null, ...end }])
      expect([state.phase, state.waitsFor, askedActions(state)]).toEqual(['ended', null, []])
    })
  })
})
