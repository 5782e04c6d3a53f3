import { describe, expect, it } from 'vitest'
import { PROTOCOL_VERSION } from '#contracts'
import { ProtocolMismatchError, readRecord } from './read-record.ts'

const id = '01935f00-0000-7000-8000-000000000001'
const stored = {
  stream: `run:${id}`,
  seq: 3,
  type: 'turn.started',
  version: 1,
  protocol_version: PROTOCOL_VERSION,
  visibility: 'public',
  owner_id: id,
  character_id: id,
  run_id: id,
  trace_id: id,
  actor: 'kernel',
  trust: 'workspace',
  at: '2026-01-01T00:00:00.000Z',
  cause: { tag: 'start', readings: { fence: 1 } },
  payload: { turn: 1 },
  content_digests: [{ content_id: id, digest: 'a'.repeat(64) }],
}

describe('reading what is stored', () => {
  it('gives back an event that it knows', () => {
    expect(readRecord(stored)).toEqual(stored)
  })

  it('drops an unknown event whole: its place in the stream stays, nothing of what it said', () => {
    const read = readRecord({ ...stored, type: 'mind.read', cause: { tag: 'telepathy' }, payload: { thought: 'secret' } })
    expect(read).toEqual({ ...stored, type: 'event.dropped', cause: { tag: 'unknown' }, payload: {}, content_digests: [] })
    expect(JSON.stringify(read)).not.toMatch(/mind|telepathy|thought|secret/)
  })

  it('refuses another version of the protocol, whatever the event', () => {
    for (const type of ['turn.started', 'mind.read']) {
      expect(() => readRecord({ ...stored, type, protocol_version: PROTOCOL_VERSION + 1 })).toThrow(ProtocolMismatchError)
    }
  })

  it('refuses what is no event', () => {
    for (const broken of [null, 'text', {}, { ...stored, seq: 0 }, { ...stored, type: 7 }, { ...stored, payload: 'text' }])
      expect(() => readRecord(broken)).toThrow()
  })
})
