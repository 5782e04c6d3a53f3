import { describe, expect, it } from 'vitest'
import type { NewEvent } from '#contracts'
import { chainEvents, EMPTY_HEAD } from '#kernel/record/chain'
import type { StreamHead } from '#kernel/record/chain'
import { VerifyService } from './verify.service.ts'
import type { ChainSource, RawEvent } from './verify.service.ts'

const ownerId = '01935f00-0000-7000-8000-00000000000b'
const runId = '01935f00-0000-7000-8000-00000000000a'
const stream = `run:${runId}`

const turn = (n: number): NewEvent => ({
  type: 'turn.started',
  payload: { turn: n },
  actor: 'kernel',
  at: '2026-01-01T00:00:00.000Z',
  cause: { tag: 'test' },
  run_id: runId,
})

/** One stream in memory. `meanwhile` runs after each read of the head or of events: somebody else writes then. */
class MemoryStream implements ChainSource {
  readonly rows: RawEvent[] = []
  readonly quarantined: string[] = []
  current: StreamHead = EMPTY_HEAD
  meanwhile: (read: 'head' | 'events') => void = () => undefined

  append(count: number): void {
    for (let n = 0; n < count; n++) {
      const { chained, head } = chainEvents({ stream, ownerId, head: this.current, events: [turn(this.current.seq + 1)] })
      this.current = head
      for (const event of chained) {
        const { payload } = JSON.parse(event.canonical) as { payload: unknown }
        this.rows.push({ ...event, payload })
      }
    }
  }

  streams = (after: string): Promise<string[]> => Promise.resolve(after === '' ? [stream] : [])
  contents = (): Promise<Map<string, never>> => Promise.resolve(new Map<string, never>())
  quarantine = (name: string): Promise<void> => Promise.resolve(void this.quarantined.push(name))

  head = (): Promise<StreamHead> => {
    const { current } = this
    this.meanwhile('head')
    return Promise.resolve(current)
  }

  events = (_: string, after: number, limit: number): Promise<RawEvent[]> => {
    const page = this.rows.filter((row) => row.seq > after).slice(0, limit)
    this.meanwhile('events')
    return Promise.resolve(page)
  }
}

const noAnchors = { check: () => Promise.resolve({ count: 0, filed: 0, faults: [] }) }
const verify = (source: MemoryStream) => new VerifyService({ source, anchors: noAnchors, now: () => 0 }).verifyAll()

describe('VerifyService', () => {
  it('goes through streams longer than a page', async () => {
    const source = new MemoryStream()
    source.append(1_200)
    expect(await verify(source)).toMatchObject({ intact: true, events: 1_200 })
  })

  it.each(['head', 'events'] as const)('takes a stream that is appended to after each read of its %s for whole', async (read) => {
    const source = new MemoryStream()
    source.append(600)
    let left = 7
    source.meanwhile = (what) => {
      if (what === read && left-- > 0) source.append(3)
    }
    expect(await verify(source)).toMatchObject({ intact: true, faults: [] })
    expect(source.quarantined).toEqual([])
  })

  it('stops where nobody wants to know any more', async () => {
    const source = new MemoryStream()
    source.append(3)
    const verifier = new VerifyService({ source, anchors: noAnchors, now: () => 0 })
    await expect(verifier.verifyAll({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
  })

  it('finds a head that was put back, and one whose events are gone, in a stream that is written to as well', async () => {
    const back = new MemoryStream()
    back.append(10)
    const row = back.rows[7]
    if (row) back.current = { seq: row.seq, hash: row.hash }
    expect((await verify(back)).faults).toMatchObject([{ fault: 'head' }])
    expect(back.quarantined).toEqual([stream])

    const cut = new MemoryStream()
    cut.append(10)
    cut.rows.splice(8)
    expect((await verify(cut)).faults).toMatchObject([{ fault: 'head', seq: 8 }])
  })
})
