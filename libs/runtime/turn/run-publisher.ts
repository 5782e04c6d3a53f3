import type { EventRecord } from '#contracts'
import type { Fanout } from '#kernel/ports/fanout'
import type { ChainedEvent } from '#kernel/record/chain'
import { toStreamEvent } from './stream-event.ts'
import type { StreamTexts } from './stream-event.ts'

/** Channel on which a run's public events are published after their commit. */
export function runChannel(runId: string): string {
  return `run.${runId}`
}

/** Tells whoever watches a run of its public events, in order, each with the one before it (decision 29). */
export class RunPublisher {
  readonly #runId: string
  readonly #fanout: Fanout
  readonly #texts: StreamTexts
  #lastPublicSeq: number

  constructor({ runId, lastPublicSeq, fanout, texts }: { runId: string; lastPublicSeq: number; fanout: Fanout; texts: StreamTexts }) {
    this.#runId = runId
    this.#lastPublicSeq = lastPublicSeq
    this.#fanout = fanout
    this.#texts = texts
  }

  publish(events: readonly ChainedEvent[]): void {
    for (const event of events) {
      if (event.visibility !== 'public') continue
      const message = toStreamEvent({
        runId: this.#runId,
        // Validated when it was chained, by this process.
        record: JSON.parse(event.canonical) as EventRecord,
        prevSeq: this.#lastPublicSeq,
        texts: this.#texts,
      })
      if (message) this.#fanout.publish(runChannel(this.#runId), JSON.stringify(message))
      this.#lastPublicSeq = event.seq
    }
  }
}
