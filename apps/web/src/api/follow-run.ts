import type { RunStreamEvent } from '#contracts'
import { ApiProblem, problemOf } from './client.ts'
import { createSseParser } from './sse-parser.ts'

const terminalTypes: ReadonlySet<string> = new Set(['run.finished', 'run.interrupted', 'run.failed'])
const backoff = [0, 250, 500, 1000, 2000]
const gapsBeforeRestart = 3
const restartsBeforeGivingUp = 2

/** What a follower needs from the outside; tests bring their own. */
export type FollowPorts = {
  open: (runId: string, afterSeq: number, signal: AbortSignal) => Promise<Response>
  wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

export type FollowListener = {
  onEvent: (event: RunStreamEvent) => void
  /** True once bytes arrive, false when the stream drops. */
  onConnected: (connected: boolean) => void
  /** The sequence could not be joined: everything is read again from the first event. */
  onRestart: () => void
}

/** The stream could not be followed although the server answers: its sequence never joins. */
export class SequenceBroken extends Error {
  constructor() {
    super('the sequence of the run does not join')
    this.name = 'SequenceBroken'
  }
}

/**
 * Follows a run to its terminal event: every public event once and in order, over any number of dropped connections
 * (decision 29). A message whose `prev_seq` is not the last seq seen makes it read the log again from there.
 * Resolves after the terminal event; throws ApiProblem on a refusal, SequenceBroken, or the signal's reason.
 */
export async function followRun(input: {
  runId: string
  listener: FollowListener
  signal: AbortSignal
  ports?: FollowPorts
}): Promise<void> {
  const { runId, listener, signal } = input
  const ports = input.ports ?? browserPorts
  let lastSeq = 0
  let failures = 0
  let gaps = 0
  let restarts = 0

  for (;;) {
    signal.throwIfAborted()
    const connection = new AbortController()
    const outcome = await readOnce(AbortSignal.any([signal, connection.signal])).finally(() => connection.abort())
    signal.throwIfAborted()
    if (outcome === 'ended') return
    if (outcome === 'gap') {
      gaps += 1
      if (gaps < gapsBeforeRestart) continue
      gaps = 0
      restarts += 1
      if (restarts > restartsBeforeGivingUp) throw new SequenceBroken()
      lastSeq = 0
      listener.onRestart()
      continue
    }
    listener.onConnected(false)
    const delay = backoff[Math.min(failures, backoff.length - 1)] ?? 0
    failures += 1
    await ports.wait(delay, signal)
  }

  async function readOnce(connectionSignal: AbortSignal): Promise<'ended' | 'gap' | 'dropped'> {
    try {
      const response = await ports.open(runId, lastSeq, connectionSignal)
      if (!response.ok) {
        const problem = await problemOf(response)
        if (problem.status < 500 && problem.status !== 429) throw new ApiProblem(problem)
        return 'dropped'
      }
      if (response.body === null) return 'dropped'
      const parser = createSseParser()
      for await (const text of decodedPieces(response.body)) {
        listener.onConnected(true)
        failures = 0
        for (const message of parser.push(text)) {
          const event = JSON.parse(message.data) as RunStreamEvent
          if (event.seq <= lastSeq) continue
          if (event.prev_seq !== lastSeq) return 'gap'
          lastSeq = event.seq
          gaps = 0
          listener.onEvent(event)
          if (terminalTypes.has(event.type)) return 'ended'
        }
      }
      return 'dropped'
    } catch (error) {
      if (error instanceof ApiProblem || signal.aborted) throw error
      return 'dropped'
    }
  }
}

async function* decodedPieces(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    // The connection may be broken already, and then there is nothing left to cancel.
    await reader.cancel().catch(() => undefined)
  }
}

const silenceMilliseconds = 45_000

const browserPorts: FollowPorts = {
  async open(runId, afterSeq, signal) {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (afterSeq > 0) headers['last-event-id'] = String(afterSeq)
    const response = await fetch(`/v1/runs/${runId}/events`, { headers, signal, credentials: 'same-origin', cache: 'no-store' })
    return response.body === null
      ? response
      : new Response(endOnSilence(response.body), { status: response.status, headers: response.headers })
  },
  wait(milliseconds, signal) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, milliseconds)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    })
  },
}

/** A half-open connection sends no heartbeat: after long silence the stream errors, and the follower connects again. */
function endOnSilence(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  let timer: ReturnType<typeof setTimeout> | undefined
  return body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      start(controller) {
        timer = setTimeout(() => controller.error(new Error('silence')), silenceMilliseconds)
      },
      transform(chunk, controller) {
        clearTimeout(timer)
        timer = setTimeout(() => controller.error(new Error('silence')), silenceMilliseconds)
        controller.enqueue(chunk)
      },
      flush() {
        clearTimeout(timer)
      },
    }),
  )
}
