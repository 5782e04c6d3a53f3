import type { Response } from 'express'
import { LingtaiError, terminalRunEvents } from '#contracts'
import type { RunStreamEvent } from '#contracts'
import type { RunStreamReader } from '#domains/runs/run-stream'
import type { Fanout } from '#kernel/ports/fanout'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { runChannel } from '#runtime/turn/run-host'

const HEARTBEAT_MS = 10_000
/** Silence after which a live run's log is read again (decision 29). */
const SILENCE_MS = 2_000
/** Bytes a slow reader may leave unread before it is dropped; it resumes from its last id. */
const BACKLOG_BYTES = 1024 * 1024

/** Sends runs' events to whoever watches: subscribe, read the log, then follow (decision 29, spec/6 "SSE"). */
export class RunStreams {
  readonly #reader: RunStreamReader
  readonly #runs: RunStore
  readonly #fanout: Fanout
  readonly #open = new Set<RunStreamSession>()

  constructor({ reader, runs, fanout }: { reader: RunStreamReader; runs: RunStore; fanout: Fanout }) {
    this.#reader = reader
    this.#runs = runs
    this.#fanout = fanout
  }

  get openStreams(): number {
    return this.#open.size
  }

  /** Resolves when the stream is over: the run has ended, or the reader has left. Throws cursor_expired before anything is sent. */
  async send({ run, after, response }: { run: RunRow; after: number; response: Response }): Promise<void> {
    const session = new RunStreamSession({ run, after, response, reader: this.#reader, runs: this.#runs, fanout: this.#fanout })
    this.#open.add(session)
    try {
      await session.serve()
    } finally {
      this.#open.delete(session)
    }
  }

  /** Ends all streams in a way that their readers can resume from. */
  close(): void {
    for (const session of this.#open) session.end()
  }
}

class RunStreamSession {
  readonly #run: RunRow
  readonly #response: Response
  readonly #reader: RunStreamReader
  readonly #runs: RunStore
  readonly #fanout: Fanout
  readonly #live: RunStreamEvent[] = []
  #cursor: number
  #wake: () => void = () => undefined
  #ended = false

  constructor(parts: { run: RunRow; after: number; response: Response; reader: RunStreamReader; runs: RunStore; fanout: Fanout }) {
    this.#run = parts.run
    this.#cursor = parts.after
    this.#response = parts.response
    this.#reader = parts.reader
    this.#runs = parts.runs
    this.#fanout = parts.fanout
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  async serve(): Promise<void> {
    const unsubscribe = await this.#fanout.subscribe(runChannel(this.#run.id), (message) => {
      this.#live.push(JSON.parse(message) as RunStreamEvent)
      this.#wake()
    })
    this.#response.on('close', () => this.end())
    try {
      const first = await this.#reader.after(this.#run, this.#cursor)
      await this.#refuseUnknownCursor(first.events)
      this.#begin()
      this.#sendAll(first.events)
      await this.#follow()
    } finally {
      unsubscribe()
      if (this.#response.headersSent) this.#response.end()
    }
  }

  /** A cursor beyond what the run has is none of ours (case S3). */
  async #refuseUnknownCursor(events: readonly RunStreamEvent[]): Promise<void> {
    if (this.#cursor === 0 || events.length > 0) return
    const last = await this.#reader.lastPublicSeq(this.#run.id)
    if (this.#cursor > last) throw new LingtaiError('cursor_expired')
  }

  #begin(): void {
    this.#response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
      Connection: 'keep-alive',
    })
    this.#response.flushHeaders()
  }

  async #follow(): Promise<void> {
    let lastHeartbeat = Date.now()
    while (!this.#ended) {
      const woken = this.#live.length > 0 || (await this.#wait(SILENCE_MS))
      if (this.#ended) return
      const batch = this.#live.splice(0)
      const isNext = batch.every((event, index) => event.seq <= this.#cursor || event.prev_seq === (batch[index - 1]?.seq ?? this.#cursor) || event.prev_seq < this.#cursor)
      if (woken && isNext) this.#sendAll(batch)
      else await this.#readAgain()
      if (Date.now() - lastHeartbeat >= HEARTBEAT_MS) {
        lastHeartbeat = Date.now()
        this.#response.write(': heartbeat\n\n')
      }
    }
  }

  /** A message was lost, or nothing came for a while: the log knows (decision 29). */
  async #readAgain(): Promise<void> {
    const { events } = await this.#reader.after(this.#run, this.#cursor)
    this.#sendAll(events)
    if (events.length > 0 || this.#ended) return
    // Nothing new and the run is over: its end was before the reader's cursor.
    const run = await this.#runs.get(this.#run.id)
    if (run && run.ended_at !== null && (await this.#reader.lastPublicSeq(this.#run.id)) <= this.#cursor) this.end()
  }

  #sendAll(events: readonly RunStreamEvent[]): void {
    let text = ''
    for (const event of events) {
      if (event.seq <= this.#cursor) continue
      text += `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
      this.#cursor = event.seq
      if (terminalRunEvents.has(event.type)) this.end()
    }
    if (text === '') return
    this.#response.write(text)
    // A reader that does not read is let go; what it missed is in the log.
    if (this.#response.writableLength > BACKLOG_BYTES) this.end()
  }

  #wait(milliseconds: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = () => undefined
        resolve(false)
      }, milliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        this.#wake = () => undefined
        resolve(true)
      }
    })
  }
}
