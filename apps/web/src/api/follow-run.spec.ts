import type { RunStreamEvent } from '#contracts'
import { describe, expect, it } from 'vitest'
import { ApiProblem } from './client.ts'
import { followRun, SequenceBroken } from './follow-run.ts'

const runId = '0196f000-0000-7000-8000-000000000001'
const base = { run_id: runId, at: '2026-11-29T00:00:00.000Z' }

/** Public events with gaps between their numbers, as internal events leave them. */
const log: RunStreamEvent[] = [
  { ...base, seq: 1, prev_seq: 0, type: 'run.requested', tree_id: null, question_id: null, candidate_id: null },
  { ...base, seq: 2, prev_seq: 1, type: 'run.started' },
  { ...base, seq: 6, prev_seq: 2, type: 'llm.delta', segments: [{ kind: 'text', part: 0, text: '潮' }] },
  { ...base, seq: 7, prev_seq: 6, type: 'llm.delta', segments: [{ kind: 'text', part: 0, text: '🌊' }] },
  { ...base, seq: 9, prev_seq: 7, type: 'run.finished', candidate_id: null, delta_count: 2, partial: false },
]

/** A server whose connections each hand out what `serve` makes of the log after the asked seq; cut anywhere, also inside a character. */
function follow(serve: (events: RunStreamEvent[], connection: number) => RunStreamEvent[], pieceBytes = 7) {
  const asked: number[] = []
  const seen: number[] = []
  const connected: boolean[] = []
  const waits: number[] = []
  let restarts = 0
  const done = followRun({
    runId,
    signal: new AbortController().signal,
    listener: {
      onEvent: (event) => seen.push(event.seq),
      onConnected: (is) => connected.push(is),
      onRestart: () => {
        restarts += 1
        seen.length = 0
      },
    },
    ports: {
      open: (_id, after) => {
        asked.push(after)
        const events = serve(
          log.filter((event) => event.seq > after),
          asked.length,
        )
        const bytes = new TextEncoder().encode(
          events.map((event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
        )
        return Promise.resolve(
          new Response(
            new ReadableStream({
              start(controller) {
                for (let at = 0; at < bytes.length; at += pieceBytes) controller.enqueue(bytes.slice(at, at + pieceBytes))
                controller.close()
              },
            }),
          ),
        )
      },
      wait: (milliseconds) => {
        waits.push(milliseconds)
        return Promise.resolve()
      },
    },
  })
  return { done, asked, seen, connected, waits, restarts: () => restarts }
}

describe('followRun', () => {
  it('hands over every event once and stops after the terminal one', async () => {
    const run = follow((events) => events)
    await run.done
    expect(run.seen).toEqual([1, 2, 6, 7, 9])
    expect(run.asked).toEqual([0])
    expect(run.connected).not.toContain(false)
  })

  it('joins a dropped stream where it broke (T7)', async () => {
    const run = follow((events, connection) => (connection === 1 ? events.slice(0, 3) : events))
    await run.done
    expect(run.seen).toEqual([1, 2, 6, 7, 9])
    expect(run.asked).toEqual([0, 6])
    expect(run.connected).toContain(false)
  })

  it('waits longer while nothing comes, and starts from the shortest wait once something did', async () => {
    const run = follow((events, connection) => (connection <= 3 ? [] : connection === 4 ? events.slice(0, 1) : events))
    await run.done
    expect(run.waits).toEqual([0, 250, 500, 0])
  })

  it('ignores what it has seen already', async () => {
    const run = follow((events, connection) => (connection === 1 ? events.slice(0, 3) : log))
    await run.done
    expect(run.seen).toEqual([1, 2, 6, 7, 9])
    expect(run.asked).toEqual([0, 6])
    expect(run.restarts()).toBe(0)
  })

  it('reads the log again when prev_seq is not the last seq seen (decision 29)', async () => {
    const run = follow((events, connection) => (connection === 1 ? events.filter((event) => event.seq !== 6) : events))
    await run.done
    expect(run.seen).toEqual([1, 2, 6, 7, 9])
    expect(run.asked).toEqual([0, 2])
  })

  it('starts anew after gaps that do not close, and gives up where that does not help either', async () => {
    const run = follow((events) => events.filter((event) => event.seq !== 2))
    await expect(run.done).rejects.toBeInstanceOf(SequenceBroken)
    expect(run.restarts()).toBe(2)
    expect(run.asked.filter((after) => after === 0).length).toBe(3)
  })

  it('throws what the server refuses', async () => {
    const refused = followRun({
      runId,
      signal: new AbortController().signal,
      listener: { onEvent: () => undefined, onConnected: () => undefined, onRestart: () => undefined },
      ports: {
        open: () =>
          Promise.resolve(
            new Response(JSON.stringify({ type: '', title: '', status: 404, code: 'not_found', detail: '', action: '', trace_id: '' }), {
              status: 404,
              headers: { 'content-type': 'application/problem+json' },
            }),
          ),
        wait: () => Promise.resolve(),
      },
    })
    await expect(refused).rejects.toBeInstanceOf(ApiProblem)
  })
})
