import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClientItem, ClientStream, messagesOf, ProtocolViolationError, queryMessage, startupMessage } from './wire-protocol.ts'

const startup = startupMessage({ user: 'u', database: 'd' })
const greeted: ClientItem = {
  kind: 'startup',
  protocolMajor: 3,
  parameters: new Map([
    ['user', 'u'],
    ['database', 'd'],
  ]),
}

/** A message as clients send it: its type, its length, its body. */
function message(type: string, ...body: (string | Buffer)[]): Buffer {
  const bytes = Buffer.concat(body.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const header = Buffer.from(`${type}0000`)
  header.writeInt32BE(bytes.length + 4, 1)
  return Buffer.concat([header, bytes])
}

const NONE = Buffer.from([0, 0])
const SYNC = message('S')

function extendedBatch(sql: string, value: string): Uint8Array {
  const length = Buffer.alloc(4)
  length.writeInt32BE(Buffer.byteLength(value))
  const bind = message('B', '\0\0', NONE, Buffer.from([0, 1]), length, value, NONE)
  return Buffer.concat([message('P', `\0${sql}\0`, NONE), bind, message('D', 'P\0'), message('E', '\0', Buffer.alloc(4)), SYNC])
}

/** Feeds bytes to a stream in chunks that end at the given places. */
function readInChunks(bytes: Uint8Array, ends: readonly number[]): ClientItem[] {
  const stream = new ClientStream()
  const places = [...new Set([0, ...ends.map((end) => end % bytes.length), bytes.length])].sort((left, right) => left - right)
  return places.slice(1).flatMap((end, at) => stream.push(bytes.subarray(places[at], end)))
}

function plain(items: readonly ClientItem[]): unknown[] {
  return items.map((item) => (item.kind === 'batch' ? { kind: 'batch', bytes: Buffer.from(item.bytes).toString('latin1') } : item))
}

describe('ClientStream', () => {
  it('cuts the same batches however the bytes arrive', () => {
    const batches = [extendedBatch('SELECT $1', 'x'.repeat(40_000)), queryMessage('SELECT 1'), extendedBatch('SELECT $1, 2', 'ü'), SYNC]
    const bytes = Buffer.concat([startup, ...batches, message('X')])
    const expected = plain([greeted, ...batches.map((batch) => ({ kind: 'batch' as const, bytes: batch })), { kind: 'terminate' }])
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length - 1 }), { maxLength: 40 }), (ends) => {
        expect(plain(readInChunks(bytes, ends))).toEqual(expected)
      }),
      { numRuns: 60 },
    )
  })

  it('keeps a batch apart from what comes after it', () => {
    const stream = new ClientStream()
    stream.push(startup)
    const [first] = stream.push(queryMessage('SELECT 1'))
    stream.push(queryMessage('SELECT 2'))
    expect(first).toEqual({ kind: 'batch', bytes: new Uint8Array(queryMessage('SELECT 1')) })
  })

  it('answers requests for encryption before the startup packet', () => {
    const stream = new ClientStream()
    expect(stream.push(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]))).toEqual([{ kind: 'encryption_request' }])
    expect(stream.push(startup)).toEqual([greeted])
  })

  it.each<[string, Uint8Array]>([
    ['an unknown message type', Buffer.from([0x01, 0, 0, 0, 4])],
    ['a negative length', Buffer.from([0x51, 0xff, 0xff, 0xff, 0xff])],
    ['a length that no message has', Buffer.from([0x51, 0x7f, 0, 0, 0])],
    ['Flush, whose client would wait for ever', message('H')],
  ])('refuses %s', (_, bytes) => {
    const stream = new ClientStream()
    stream.push(startup)
    expect(() => stream.push(bytes)).toThrow(ProtocolViolationError)
  })
})

describe('messagesOf', () => {
  it('reads the names and the SQL of a batch', () => {
    const batch = Buffer.concat([
      message('P', 'n\0SELECT $1\0', NONE),
      message('B', 'p\0n\0', NONE, NONE, NONE),
      message('D', 'Sn\0'),
      message('D', 'Pp\0'),
      message('C', 'Sn\0'),
      SYNC,
    ])
    expect([...messagesOf(batch)]).toEqual([
      { kind: 'parse', statement: 'n', sql: 'SELECT $1' },
      { kind: 'bind', statement: 'n' },
      { kind: 'describe_statement', statement: 'n' },
      { kind: 'other' },
      { kind: 'close_statement', statement: 'n' },
      { kind: 'other' },
    ])
  })

  it('refuses a string without its end', () => {
    expect(() => [...messagesOf(Buffer.from([0x51, 0, 0, 0, 6, 0x41, 0x42]))]).toThrow(ProtocolViolationError)
  })
})
