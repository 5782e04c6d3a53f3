import { describe, expect, it } from 'vitest'
import { createSseParser } from './sse-parser.ts'

const stream = ': heartbeat\n\nid: 3\nevent: llm.delta\ndata: {"a":1}\n\nid: 5\r\nevent: run.finished\r\ndata: one\r\ndata: two\r\n\r\n'

describe('createSseParser', () => {
  it('reads messages however the text is cut', () => {
    for (let size = 1; size <= stream.length; size += 1) {
      const parser = createSseParser()
      const messages = []
      for (let at = 0; at < stream.length; at += size) messages.push(...parser.push(stream.slice(at, at + size)))
      expect(messages).toEqual([
        { id: '3', event: 'llm.delta', data: '{"a":1}' },
        { id: '5', event: 'run.finished', data: 'one\ntwo' },
      ])
    }
  })

  it('makes no message of a comment or of a message that is not finished', () => {
    const parser = createSseParser()
    expect(parser.push(': ping\n\ndata: half')).toEqual([])
    expect(parser.push('\n\n')).toEqual([{ id: null, event: 'message', data: 'half' }])
  })
})
