import { createServer, request } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LingtaiError } from '#contracts'
import { readJson } from './read-body.ts'

const LIMIT = 1000

/** Reads each request as the edge does and answers what came of it. */
const server = createServer((incoming, outgoing) => {
  readJson(incoming, LIMIT).then(
    ({ value }) => outgoing.end(JSON.stringify({ value })),
    (error: unknown) => {
      incoming.resume()
      outgoing.end(
        JSON.stringify(error instanceof LingtaiError ? { code: error.code, path: error.errors[0]?.path } : { crash: String(error) }),
      )
    },
  )
})

beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)))
afterAll(() => new Promise((resolve) => void server.close(resolve)))

function send(
  pieces: readonly (string | Uint8Array)[],
  headers: OutgoingHttpHeaders = { 'content-type': 'application/json' },
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const { port } = server.address() as AddressInfo
    const outgoing = request({ port, host: '127.0.0.1', method: 'POST', headers, agent: false }, (incoming: IncomingMessage) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      incoming.on('end', () => resolve(JSON.parse(text)))
    })
    outgoing.on('error', reject)
    for (const piece of pieces) outgoing.write(piece)
    outgoing.end()
  })
}

describe('reading a body', () => {
  it('reads JSON, with or without a charset', async () => {
    expect(await send(['{"a"', ':1}'])).toEqual({ value: { a: 1 } })
    expect(await send(['{"a":"é"}'], { 'content-type': 'Application/JSON; charset="UTF-8"' })).toEqual({ value: { a: 'é' } })
  })

  it('takes no body as an empty object', async () => {
    expect(await send([], {})).toEqual({ value: {} })
  })

  it.each([
    ['not JSON', ['{"a":']],
    ['not UTF-8', [Uint8Array.of(0x22, 0xc3, 0x28, 0x22)]],
    ['overlong UTF-8', [Uint8Array.of(0x22, 0xc0, 0x80, 0x22)]],
  ])('refuses what is %s', async (_, pieces) => {
    expect(await send(pieces)).toEqual({ code: 'malformed_body', path: 'body' })
  })

  it.each([
    ['no type', {}],
    ['another type', { 'content-type': 'text/plain' }],
    ['a form, as another site could send', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['another charset', { 'content-type': 'application/json; charset=gbk' }],
  ])('refuses %s', async (_, headers) => {
    expect(await send(['{}'], headers)).toEqual({ code: 'unsupported_media_type', path: 'headers.content-type' })
  })

  it('refuses a packed body', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    expect(await send(['x'], headers)).toEqual({ code: 'unsupported_media_type', path: 'headers.content-encoding' })
  })

  it('refuses what is too large, announced or not, and takes what just fits', async () => {
    const fits = JSON.stringify('x'.repeat(LIMIT - 2))
    expect(await send([fits])).toEqual({ value: 'x'.repeat(LIMIT - 2) })
    expect(await send([`${fits} `])).toEqual({ code: 'payload_too_large', path: 'body' })
    const headers = { 'content-type': 'application/json', 'content-length': String(LIMIT + 1) }
    expect(await send([' '.repeat(LIMIT + 1)], headers)).toEqual({ code: 'payload_too_large', path: 'body' })
  })
})
