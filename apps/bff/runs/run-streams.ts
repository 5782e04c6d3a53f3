import type { Response } from 'express'
import { LingtaiError, terminalRunEvents } from '#contracts'
import type { RunStreamEvent } from '#contracts'
import type { RunStreamReader } from '#domains/runs/run-stream'
import type { Fanout } from '#kernel/ports/fanout'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { runChannel } from '#runtime/turn/run-publisher'

const HEARTBEAT_MS = 10_000
/** Silence after which a live run's log is read again (decision 29). */
const SILENCE_MS = 2_000
/** Characters written at once; then the reader has to have read them. */
const WRITE_CHARACTERS = 64 * 1024
/** How long a reader may leave unread what was written to it; then it is dropped, and resumes from its last id. */
const SLOW_MS = 10_000
/** Time for the end of a dropped stream to reach its reader; then the connection is cut. */
const GOODBYE_MS = 2_000
/** Messages that may wait for a reader; more are let go, and the log is read again. */
const WAITING_MAX = 256

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
  #live: RunStreamEvent[] = []
  #missed = false
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
    const unsubscribe = await this.#fanout.subscribe(runChannel(this.#run.id), (message) => this.#hear(message))
    this.#response.on('close', () => this.end())
    try {
      const first = await this.#reader.after(this.#run, this.#cursor)
      await this.#refuseUnknownCursor(first.events)
      this.#begin()
      if (!(await this.#catchUp(first))) await this.#endIfOver()
      await this.#follow()
    } finally {
      unsubscribe()
      if (this.#response.headersSent) this.#sayGoodbye()
    }
  }

  #hear(message: string): void {
    if (this.#live.length < WAITING_MAX) this.#live.push(JSON.parse(message) as RunStreamEvent)
    else {
      this.#live = []
      this.#missed = true
    }
    this.#wake()
  }

  #sayGoodbye(): void {
    this.#response.end()
    const cut = setTimeout(() => this.#response.destroy(), GOODBYE_MS)
    this.#response.once('close', () => clearTimeout(cut))
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
      const woken = this.#live.length > 0 || this.#missed || (await this.#wait(SILENCE_MS))
      if (this.#ended) return
      const batch = this.#live
      this.#live = []
      const isNext = woken && !this.#missed && this.#goesOn(batch)
      this.#missed = false
      if (isNext) await this.#send(batch)
      else if (!(await this.#catchUp())) await this.#endIfOver()
      if (Date.now() - lastHeartbeat >= HEARTBEAT_MS) {
        lastHeartbeat = Date.now()
        await this.#write(': heartbeat\n\n')
      }
    }
  }

  /** Whether these messages follow on what was sent, none lost in between (decision 29). */
  #goesOn(batch: readonly RunStreamEvent[]): boolean {
    let cursor = this.#cursor
    for (const event of batch) {
      if (event.seq <= cursor) continue
      if (event.prev_seq > cursor) return false
      cursor = event.seq
    }
    return true
  }

  /** Sends what the log has behind the cursor, a page at a time: at the start, after a lost message, and after silence. */
  async #catchUp(first?: Awaited<ReturnType<RunStreamReader['after']>>): Promise<boolean> {
    let found = false
    for (let more = true; more && !this.#ended;) {
      const page = first ?? (await this.#reader.after(this.#run, this.#cursor))
      first = undefined
      found ||= page.events.length > 0
      more = page.more
      await this.#send(page.events)
    }
    return found
  }

  /** There is nothing behind the cursor, and there never will be. */
  async #endIfOver(): Promise<void> {
    const run = await this.#runs.get(this.#run.id)
    if (run && run.ended_at !== null && (await this.#reader.lastPublicSeq(this.#run.id)) <= this.#cursor) this.end()
  }

  async #send(events: readonly RunStreamEvent[]): Promise<void> {
    let text = ''
    for (const event of events) {
      if (this.#ended) return
      if (event.seq <= this.#cursor) continue
      text += `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
      this.#cursor = event.seq
      const isLast = terminalRunEvents.has(event.type)
      if (isLast || text.length >= WRITE_CHARACTERS) {
        await this.#write(text)
        text = ''
      }
      if (isLast) this.end()
    }
    if (text !== '') await this.#write(text)
  }

  /** Writes, and where the reader is behind waits for it. One that does not read in time is let go: what it missed is in the log. */
  async #write(text: string): Promise<void> {
    if (this.#ended || this.#response.write(text)) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#response.off('drain', done)
        this.#response.off('close', done)
        resolve()
      }
      const timer = setTimeout(() => {
        this.end()
        done()
      }, SLOW_MS)
      this.#response.on('drain', done)
      this.#response.on('close', done)
    })
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
