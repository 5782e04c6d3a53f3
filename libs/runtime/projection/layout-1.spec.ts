import { describe, expect, it } from 'vitest'
import { payloadSchema } from '#contracts'
import type { NodePart, NodeRole } from '#contracts'
import golden from './golden/layout-1.json' with { type: 'json' }
import { UnknownLayoutError, layoutOf } from './layouts.ts'
import { rebuildRequest, replayRequest } from './rebuild-request.ts'
import type { ReferenceLoader } from './rebuild-request.ts'
import { InvalidFrameError, renderRequest } from './render-request.ts'
import { pathDigest, requestDigest } from './request-digest.ts'

const projected = payloadSchema('context.projected').parse(golden.projected)
const contents = new Map(Object.entries(golden.contents))
const nodes = golden.nodes.map((node) => ({
  ...node,
  erased: false as const,
  role: node.role as NodeRole,
  parts: node.parts as NodePart[],
}))
const loader: ReferenceLoader = { content: (id) => contents.get(id), path: () => nodes }

describe('layout 1, against its golden file: a change here breaks the replay of what is recorded', () => {
  it('M10: makes the same body from the same references', () => {
    const rebuilt = rebuildRequest(projected, loader)
    expect(rebuilt).toMatchObject({ result: 'rebuilt', bodyText: golden.bodyText })
    expect(JSON.parse(golden.bodyText)).toMatchObject({ model: 'm/1', messages: rebuilt.messages })
  })

  it('makes the same digests', () => {
    const speaking = nodes.filter((node) => layoutOf(1).nodeMessages(node).length > 0)
    expect(pathDigest(speaking)).toBe(golden.projected.pieces[1]?.digest)
    expect(requestDigest(projected)).toBe(golden.requestDigest)
    expect(replayRequest({ projected, recordedDigest: golden.requestDigest, loader }).result).toBe('identical')
  })

  it('is not guessed: an unknown version is refused', () => {
    expect(() => rebuildRequest({ ...projected, layout_version: 2 }, loader)).toThrow(UnknownLayoutError)
  })
})

describe('renderRequest', () => {
  const messages = [{ role: 'user' as const, content: 'hi' }]

  it('keeps the bytes of the frame and puts the messages last', () => {
    expect(renderRequest({ frame: '{"a": 1.0,"b":[ ]}', messages })).toBe('{"a": 1.0,"b":[ ],"messages":[{"role":"user","content":"hi"}]}')
    expect(renderRequest({ frame: '{"a":1}', messages: [] })).toBe('{"a":1,"messages":[]}')
  })

  it.each(['', '[]', '{}', ' {"a":1}', '{"a":1} ', '{"a":1,}', '{"a":1}{"b":2}', '{"messages":[]}', 'null', '"{}"'])(
    'refuses the frame %j',
    (frame) => {
      expect(() => renderRequest({ frame, messages })).toThrow(InvalidFrameError)
    },
  )
})
