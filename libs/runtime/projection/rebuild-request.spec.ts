import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ContextPiece } from '#contracts'
import { payloadSchema } from '#contracts'
import { assemble } from '../prompt/assemble.ts'
import { contentOf, entity, inChat, loaderOf, path, recorded, request, testDigest, testId } from '../prompt/test-prompts.ts'
import { MissingDerivedContentError, projectedContext, projectedContents } from './projected-context.ts'
import { rebuildRequest, referencesOf, replayRequest } from './rebuild-request.ts'
import type { LoadedNode, Projected, ReferenceLoader } from './rebuild-request.ts'
import { requestDigest } from './request-digest.ts'

const conversation = path([
  { role: 'none' },
  { role: 'user', text: 'q1' },
  {
    role: 'character',
    parts: [
      { kind: 'text', text: 'a1' },
      { kind: 'steer', text: 'wait' },
      { kind: 'text', text: 'a2' },
    ],
  },
  { role: 'user', text: 'q2' },
  { role: 'character', text: 'a3' },
  { role: 'user', text: 'q3' },
])
const input = request({
  entities: [
    entity({ identifier: 'main', text: 'You are {{char}}.', expand: true }),
    inChat('memory', 1, 0, { source: 'memory', text: 'likes tea', contentRef: contentOf(70, 'likes tea') }),
  ],
  conversation,
})
const stored = recorded(input, assemble(input))
const { projected } = stored
const recordedDigest = requestDigest(projected)
const loader = loaderOf(stored)

/** The same places with one thing in them changed. */
const withNodes = (change: (node: LoadedNode) => LoadedNode | null): ReferenceLoader => ({
  content: (id) => loader.content(id),
  path: (range) => {
    const nodes = loader.path(range)
    return nodes === undefined || nodes === 'erased' ? nodes : nodes.map(change).filter((node) => node !== null)
  },
})

const replay = (changes: { projected?: Projected; loader?: ReferenceLoader }) =>
  replayRequest({ projected, recordedDigest, loader, ...changes })

describe('the record', () => {
  it('is what the dictionary says, and names what to load', () => {
    expect(payloadSchema('context.projected').strict().parse(projected)).toEqual(projected)
    expect(referencesOf(projected)).toEqual({
      contentIds: [testId(3000), testId(4000), testId(70)],
      ranges: [
        { from_node_id: testId(2), to_node_id: testId(5) },
        { from_node_id: testId(6), to_node_id: testId(6) },
      ],
    })
    expect(projectedContents(projected).map(({ content_id }) => content_id)).toEqual([testId(3000), testId(4000), testId(70)])
    expect(projected.entities.map(({ identifier, content_id }) => [identifier, content_id])).toEqual([
      ['main', testId(4000)],
      ['history.1', null],
      ['memory', testId(70)],
      ['question', testId(1006)],
    ])
  })

  it('is not made while a derived text is not stored', () => {
    const assembly = assemble(input)
    const unstored = {
      assembly,
      derived: [],
      frame: contentOf(3000, ''),
      turn: 1,
      tokenizer: 'characters',
      readings: input.readings,
      recallAuditId: null,
    }
    expect(() => projectedContext(unstored)).toThrow(MissingDerivedContentError)
  })
})

describe('replay (M10)', () => {
  it('is identical where nothing changed', () => {
    const replayed = replay({})
    expect(replayed).toMatchObject({ result: 'identical', rebuiltDigest: recordedDigest })
    expect(replayed.bodyText).toContain('"content":"You are Lin."')
  })

  it('finds a changed text, wherever it is', () => {
    for (const id of stored.contents.keys()) {
      const changed = new Map(stored.contents).set(id, '{"x":1}')
      expect(replay({ loader: loaderOf({ ...stored, contents: changed }) })).toMatchObject({ result: 'different', bodyText: null })
    }
    for (const { node_id } of conversation.slice(1)) {
      const changed = withNodes((node) => {
        if (node.node_id !== node_id || node.erased) return node
        const parts = node.parts.map((part) => ({ ...part, text: `${part.text}!` }))
        return { ...node, parts, digest: testDigest(parts.map(({ text }) => text).join('')) }
      })
      expect(replay({ loader: changed }).result).toBe('different')
    }
  })

  it('finds a changed role, cut into parts, a missing, added or exchanged node', () => {
    const role = withNodes((node) => (node.node_id === testId(3) ? { ...node, role: 'user' } : node))
    const kind = withNodes((node) =>
      node.node_id === testId(3) && !node.erased
        ? { ...node, parts: node.parts.map((part) => ({ ...part, kind: 'text' as const })) }
        : node,
    )
    const cut = withNodes((node) =>
      node.node_id === testId(3) && !node.erased
        ? {
            ...node,
            parts: [
              { kind: 'text', text: 'a1w' },
              { kind: 'steer', text: 'ait' },
              { kind: 'text', text: 'a2' },
            ],
          }
        : node,
    )
    const missing = withNodes((node) => (node.node_id === testId(3) ? null : node))
    const added: ReferenceLoader = {
      content: (id) => loader.content(id),
      path: (range) => {
        const nodes = loader.path(range)
        const [first, ...rest] = Array.isArray(nodes) ? (nodes as LoadedNode[]) : []
        if (!first) return nodes
        return [
          first,
          { node_id: testId(88), erased: false, role: 'user', parts: [{ kind: 'text', text: 'new' }], digest: testDigest('new') },
          ...rest,
        ]
      },
    }
    const exchanged: ReferenceLoader = {
      content: (id) => loader.content(id),
      path: () => loader.path({ from_node_id: testId(6), to_node_id: testId(6) }),
    }
    for (const tampered of [role, kind, cut, missing, added, exchanged])
      expect(replay({ loader: tampered })).toMatchObject({ result: 'different' })
  })

  it('finds what is gone without a trace', () => {
    expect(replay({ loader: { content: () => undefined, path: () => undefined } }).rebuilt).toMatchObject({
      result: 'different',
      faults: expect.arrayContaining([{ reference: testId(70), fault: 'missing' }]),
    })
  })

  it('finds a tampered reference: any piece changed, dropped, doubled or moved', () => {
    const forged = (pieces: ContextPiece[]): Projected => ({ ...projected, pieces })
    const tamper = fc.oneof(
      fc.record({
        how: fc.constantFrom('drop', 'double', 'role', 'digest', 'content', 'from', 'to', 'nodes'),
        at: fc.nat({ max: projected.pieces.length - 1 }),
      }),
      fc.record({ how: fc.constant('swap'), at: fc.nat({ max: projected.pieces.length - 2 }) }),
    )
    fc.assert(
      fc.property(tamper, ({ how, at }) => {
        const pieces: ContextPiece[] = structuredClone(projected.pieces)
        const piece = pieces[at]
        if (!piece) throw new Error('a piece stands at each place')
        const other = testId(99)
        if (how === 'drop') pieces.splice(at, 1)
        else if (how === 'double') pieces.splice(at, 0, piece)
        else if (how === 'swap') pieces.splice(at, 2, ...pieces.slice(at, at + 2).reverse())
        else if (how === 'digest') pieces[at] = { ...piece, digest: testDigest('other') }
        else if (piece.kind !== 'path') pieces[at] = how === 'role' ? { ...piece, role: 'user' } : { ...piece, content_id: other }
        else if (how === 'from') pieces[at] = { ...piece, from_node_id: other }
        else if (how === 'to') pieces[at] = { ...piece, to_node_id: other }
        else pieces[at] = { ...piece, nodes: piece.nodes + 1 }
        expect(replay({ projected: forged(pieces) }).result).toBe('different')
      }),
    )
    expect(replay({ projected: { ...projected, frame_content_id: testId(70) } }).result).toBe('different')
    expect(replay({ projected: { ...projected, frame_digest: testDigest('x') } }).result).toBe('different')
    expect(replayRequest({ projected, recordedDigest: testDigest('x'), loader }).result).toBe('different')
  })

  it('takes an erased part for no difference and blanks that part only', () => {
    const erased = (...ids: string[]) => replay({ loader: loaderOf(stored, new Set(ids)) })
    const memory = erased(testId(70))
    expect(memory).toMatchObject({ result: 'erased', bodyText: null, rebuiltDigest: recordedDigest, rebuilt: { erased: [testId(70)] } })
    expect(memory.rebuilt.messages.map(({ content }) => content)).toEqual([
      'You are Lin.',
      'q1',
      'a1',
      'wait',
      'a2',
      'q2',
      'a3',
      null,
      'q3',
    ])
    const node = erased(testId(4))
    expect(node.rebuilt).toMatchObject({ result: 'erased', erased: [testId(4)] })
    expect(node.rebuilt.messages.map(({ role, content }) => [role, content])).toContainEqual(['user', null])
    expect(erased(testId(3000)).rebuilt).toMatchObject({ result: 'erased', erased: [testId(3000)] })
    expect(replay({ loader: { content: (id) => loader.content(id), path: () => 'erased' } }).result).toBe('erased')
  })

  it('still finds a change beside an erased part', () => {
    const changed = new Map(stored.contents).set(testId(4000), 'You are Eve.')
    expect(replay({ loader: loaderOf({ ...stored, contents: changed }, new Set([testId(70)])) })).toMatchObject({ result: 'different' })
  })

  it('sees no erasure in a node that was deleted before the request was made', () => {
    const without = conversation.map((node) => (node.node_id === testId(3) ? { ...node, parts: [], content_id: null, digest: null } : node))
    const later = request({ ...input, conversation: without })
    const after = recorded(later, assemble(later))
    expect(
      replayRequest({ projected: after.projected, recordedDigest: requestDigest(after.projected), loader: loaderOf(after) }).result,
    ).toBe('identical')
  })
})

describe('a rewritten request', () => {
  const memoryAt = 7
  const patchText = (op: object): string => JSON.stringify({ version: 1, reference: testId(70), ops: [op] })
  const texts = new Map([
    [testId(801), patchText({ op: 'remove', at: memoryAt })],
    [testId(802), patchText({ op: 'insert', at: 0, role: 'system', text: 'Be brief.' })],
    [testId(803), patchText({ op: 'remove', at: 40 })],
    [testId(804), '{"version":2}'],
  ])
  const rewriteOf = (id: string) => ({ patch_content_id: id, digest: testDigest(texts.get(id) ?? '') })
  const rewrites = [rewriteOf(testId(801)), rewriteOf(testId(802))]
  const digestWith = (which: readonly { digest: string }[]) =>
    requestDigest(
      projected,
      which.map(({ digest }) => digest),
    )
  const withPatches = (changes: ReadonlyMap<string, string | 'erased'> = new Map()): ReferenceLoader => ({
    path: (range) => loader.path(range),
    content: (id) => {
      const changed = changes.get(id)
      if (changed === 'erased') return 'erased'
      const text = changed ?? texts.get(id)
      return text === undefined ? loader.content(id) : { text, digest: testDigest(text) }
    },
  })
  const replayed = (which: typeof rewrites, from = withPatches(), digest = digestWith(which)) =>
    replayRequest({ projected, rewrites: which, recordedDigest: digest, loader: from })

  it('is rebuilt with its patches, in their order', () => {
    const { result, rebuilt, bodyText } = replayed(rewrites)
    expect(result).toBe('identical')
    expect(rebuilt.messages.map(({ content }) => content)).toEqual([
      'Be brief.',
      'You are Lin.',
      'q1',
      'a1',
      'wait',
      'a2',
      'q2',
      'a3',
      'q3',
    ])
    expect(bodyText).not.toContain('likes tea')
    expect(referencesOf(projected, rewrites).contentIds).toEqual(expect.arrayContaining([testId(801), testId(802)]))
  })

  it('is another request than one without them, or with them in another order', () => {
    expect(digestWith([])).toBe(recordedDigest)
    expect(new Set([recordedDigest, digestWith(rewrites), digestWith(rewrites.toReversed()), digestWith(rewrites.slice(1))]).size).toBe(4)
    for (const which of [[], rewrites.slice(1), rewrites.toReversed()]) {
      expect(replayed(which, withPatches(), digestWith(rewrites)).result).toBe('different')
    }
  })

  it('shows a patch that was tampered with, lost, or that fits nothing', () => {
    const other = patchText({ op: 'insert', at: 0, role: 'system', text: 'Be rude.' })
    expect(replayed(rewrites, withPatches(new Map([[testId(802), other]])))).toMatchObject({
      result: 'different',
      bodyText: null,
      rebuilt: { faults: [{ reference: testId(802), fault: 'digest' }] },
    })
    const lost = { patch_content_id: testId(899), digest: testDigest('') }
    expect(replayed([lost]).rebuilt).toMatchObject({ faults: [{ reference: testId(899), fault: 'missing' }] })
    for (const n of [803, 804]) {
      expect(replayed([rewriteOf(testId(n))]).rebuilt).toMatchObject({
        result: 'different',
        faults: [{ reference: testId(n), fault: 'patch' }],
      })
    }
  })

  it('replays as erased where a patch is erased, or what was patched', () => {
    for (const gone of [testId(802), testId(70)]) {
      expect(replayed(rewrites, withPatches(new Map([[gone, 'erased']])))).toMatchObject({ result: 'erased', rebuilt: { erased: [gone] } })
    }
    const both = new Map([
      [testId(70), 'erased'],
      [testId(802), '{}'],
    ])
    expect(replayed(rewrites, withPatches(both)).result).toBe('different')
  })
})

describe('the request digest', () => {
  it('does not depend on anything but the parts of the request', () => {
    expect(requestDigest({ ...projected, entities: [], dropped: [], turn: 9 } as Projected)).toBe(recordedDigest)
    expect(rebuildRequest({ ...projected, entities: [] }, loader).result).toBe('rebuilt')
  })
})
