import { describe, expect, it } from 'vitest'
import { assemble } from './assemble.ts'
import { HISTORY_RANK } from './entity.ts'
import { ContextOverflowError, MissingUserMessageError, NotAncestorsError, UnreferencedTextError } from './prompt-errors.ts'
import { chat, contentOf, entity, inChat, lines, path, request, testDigest, testId } from './test-prompts.ts'

const overhead = 4
const perRequest = 3

describe('order', () => {
  it('sends relative entities by rank around the conversation, one message each', () => {
    const at = (identifier: string, rank: number) => entity({ identifier, text: identifier, position: { at: 'relative', rank } })
    const entities = [at('late', HISTORY_RANK), at('b', 20), at('a', 10), at('b2', 20)]
    expect(lines(assemble(request({ entities, conversation: chat('hi') })))).toEqual([
      'system: a',
      'system: b',
      'system: b2',
      'user: hi',
      'system: late',
    ])
  })

  it('counts depth over real conversation messages: 0 is after the last, deeper than the chat just before its first', () => {
    const entities = [inChat('d0', 0, 1), inChat('d1', 1, 1), inChat('d2', 2, 1), inChat('d9', 9, 1), inChat('d99', 99, 1)]
    const conversation = chat('one', 'two', 'three')
    expect(lines(assemble(request({ entities, conversation })))).toEqual([
      'system: d99',
      'system: d9',
      'user: one',
      'system: d2',
      'assistant: two',
      'system: d1',
      'user: three',
      'system: d0',
    ])
  })

  it('L10: at one depth order decides, then the list, never the role', () => {
    const entities = [
      inChat('assistant', 1, 2, { role: 'assistant' }),
      inChat('user', 1, 1, { role: 'user' }),
      inChat('first', 1, 3),
      inChat('second', 1, 3, { role: 'assistant' }),
    ]
    expect(lines(assemble(request({ entities, conversation: chat('hi') })))).toEqual([
      'user: user',
      'assistant: assistant',
      'system: first',
      'assistant: second',
      'user: hi',
    ])
  })

  it('counts a node once, however many messages its parts make, and nothing for one that projects as nothing', () => {
    const conversation = path([
      { role: 'none' },
      { role: 'user', text: 'q1' },
      {
        role: 'character',
        parts: [
          { kind: 'reasoning', text: 'hm' },
          { kind: 'text', text: 'a1' },
          { kind: 'steer', text: 'wait' },
          { kind: 'text', text: 'a2' },
        ],
      },
      { role: 'character', deleted: true },
      { role: 'narrator', text: 'night falls' },
      { role: 'user', text: 'q2' },
    ])
    const sent = lines(assemble(request({ entities: [inChat('d3', 3, 0)], conversation })))
    expect(sent).toEqual(['user: q1', 'system: d3', 'assistant: a1', 'user: wait', 'assistant: a2', 'system: night falls', 'user: q2'])
  })

  it('puts earlier turns of the run after the question, as messages that depth counts', () => {
    const conversation = chat('q')
    const continuation = [
      { kind: 'said', text: 'so far', contentRef: null, derivedFrom: [testId(1)], trust: 'workspace' },
      { kind: 'steer', text: 'shorter!', contentRef: contentOf(2, 'shorter!'), derivedFrom: [], trust: 'trusted' },
    ] as const
    const assembly = assemble(request({ entities: [inChat('d1', 1, 0)], conversation, continuation }))
    expect(lines(assembly)).toEqual(['user: q', 'assistant: so far', 'system: d1', 'user: shorter!'])
    expect(assembly.entities.map(({ recorded }) => [recorded.identifier, recorded.source, recorded.reason])).toEqual([
      ['question', 'owner_instruction', 'question'],
      ['continuation.1', 'conversation', 'said'],
      ['d1', 'world', 'test'],
      ['continuation.2', 'owner_instruction', 'steer'],
    ])
  })
})

describe('pieces and record', () => {
  it('folds consecutive nodes into one path piece and keeps the order of messages', () => {
    const conversation = chat('one', 'two', 'three', 'four', 'five')
    const assembly = assemble(request({ entities: [entity({ identifier: 'top', text: 'top' }), inChat('mid', 1, 0)], conversation }))
    expect(
      assembly.pieces.map((piece) => (piece.kind === 'path' ? [piece.from_node_id, piece.to_node_id, piece.nodes] : piece.role)),
    ).toEqual(['system', [testId(1), testId(4), 4], 'system', [testId(5), testId(5), 1]])
    expect(assembly.derived.map(({ identifier }) => identifier)).toEqual(['top', 'mid'])
  })

  it('records the question and each partial by itself and the rest as one row per stretch, in sent order', () => {
    const conversation = path([
      { role: 'character', text: 'hello' },
      { role: 'user', text: 'q1' },
      { role: 'character', text: 'half an ans', partial: true },
      { role: 'user', text: 'q2' },
    ])
    const assembly = assemble(request({ entities: [inChat('mid', 2, 0)], conversation }))
    const rows = assembly.entities.map(({ recorded }) => [recorded.identifier, recorded.reason, recorded.source_id, recorded.content_id])
    expect(rows).toEqual([
      ['history.1', 'history', testId(1), null],
      ['mid', 'test', null, null],
      ['partial.2', 'partial', testId(3), testId(1003)],
      ['question', 'question', testId(4), testId(1004)],
    ])
    expect(lines(assembly)).toContain('assistant: half an ans')
    expect(assembly.entities.map(({ recorded }) => recorded.position)).toEqual([
      { at: 'in_chat', depth: 2, order: 0 },
      { at: 'in_chat', depth: 2, order: 0 },
      { at: 'in_chat', depth: 1, order: 0 },
      { at: 'in_chat', depth: 0, order: 0 },
    ])
  })

  it('gives each row of one piece its depth and the least trust of its nodes', () => {
    const conversation = path([
      { role: 'user', text: 'q0' },
      { role: 'character', text: 'a0' },
      { role: 'character', text: 'half', partial: true },
      { role: 'user', text: 'q1' },
    ])
    const assembly = assemble(request({ conversation }))
    expect(assembly.pieces).toHaveLength(1)
    expect(assembly.entities.map(({ recorded }) => [recorded.identifier, recorded.position, recorded.trust])).toEqual([
      ['history.1', { at: 'in_chat', depth: 2, order: 0 }, 'workspace'],
      ['partial.2', { at: 'in_chat', depth: 1, order: 0 }, 'workspace'],
      ['question', { at: 'in_chat', depth: 0, order: 0 }, 'trusted'],
    ])
  })

  it('refers to a stored text and derives only what differs from it', () => {
    const stored = entity({ identifier: 'lore', text: 'Tea house.', contentRef: contentOf(50, 'Tea house.'), expand: true })
    const withMacro = entity({
      identifier: 'main',
      text: 'You are {{char}}.',
      contentRef: contentOf(51, 'You are {{char}}.'),
      expand: true,
    })
    const memory = entity({
      identifier: 'memory',
      source: 'memory',
      text: '{{char}} said so',
      contentRef: contentOf(52, '{{char}} said so'),
      expand: true,
    })
    const assembly = assemble(request({ entities: [stored, withMacro, memory], conversation: chat('hi') }))
    expect(lines(assembly).slice(0, 3)).toEqual(['system: Tea house.', 'system: You are Lin.', 'system: {{char}} said so'])
    expect(assembly.derived).toEqual([{ identifier: 'main', text: 'You are Lin.', derivedFrom: [testId(51), testId(900)] }])
    expect(assembly.pieces[0]).toEqual({ kind: 'content', role: 'system', ref: contentOf(50, 'Tea house.') })
  })

  it('never expands what a person or the model said in the chat', () => {
    expect(lines(assemble(request({ conversation: chat('{{char}} {{roll:6}}', '{{user}}', 'q {{date}}') })))).toEqual([
      'user: {{char}} {{roll:6}}',
      'assistant: {{user}}',
      'user: q {{date}}',
    ])
  })

  it('lets a quoted message lower the trust of the entity that quotes it, and names its content', () => {
    const conversation = path([
      { role: 'user', text: 'q' },
      { role: 'character', text: 'obey me' },
      { role: 'user', text: 'r' },
    ])
    const [first, second] = [conversation[0], conversation[1]]
    if (!first || !second) throw new Error('the path has three nodes')
    const untrusted = [first, { ...second, trust: 'untrusted' as const }, ...conversation.slice(2)]
    const quoting = entity({ identifier: 'echo', text: 'Last: {{lastCharMessage}}', expand: true, trust: 'trusted' })
    const assembly = assemble(request({ entities: [quoting], conversation: untrusted }))
    expect(assembly.entities[0]?.recorded.trust).toBe('untrusted')
    expect(assembly.derived[0]?.derivedFrom).toEqual([testId(1002)])
    expect(assembly.trust).toBe('untrusted')
  })

  it('leaves out blank texts and entities for other kinds of run, and says why', () => {
    const entities = [
      entity({ identifier: 'blank', text: ' \n' }),
      entity({ identifier: 'gone', text: '', overriddenBy: 'tree' }),
      entity({ identifier: 'other', text: 'x', triggers: ['regenerate'] }),
      entity({ identifier: 'this', text: 'y', triggers: ['regenerate', 'normal'] }),
    ]
    const assembly = assemble(request({ entities, conversation: chat('hi') }))
    expect(lines(assembly)).toEqual(['system: y', 'user: hi'])
    expect(assembly.dropped.map(({ identifier, reason }) => [identifier, reason])).toEqual([
      ['blank', 'empty'],
      ['gone', 'removed_by_override'],
      ['other', 'trigger'],
    ])
  })

  it('counts each stored text by its digest, so that a cache can answer', () => {
    const digests: (string | undefined)[] = []
    const countTokens = (text: string, digest?: string): number => {
      digests.push(digest)
      return text.length
    }
    const conversation = path([
      { role: 'character', text: 'known', tokens: 5 },
      {
        role: 'character',
        parts: [
          { kind: 'text', text: 'a' },
          { kind: 'reasoning', text: 'b' },
        ],
      },
      { role: 'user', text: 'q' },
    ])
    assemble(request({ entities: [entity({ identifier: 'lore', text: 'L', contentRef: contentOf(50, 'L') })], conversation, countTokens }))
    expect(digests).toEqual([undefined, testDigest('q'), testDigest('L')])
  })
})

describe('budget', () => {
  const text = (length: number): string => 'x'.repeat(length)
  /** Window that leaves exactly these tokens. */
  const leaving = (tokens: number) => ({ window: tokens + 1000, reserve: 900, toolTokens: 100 })

  it('claims in the order: mandatory, entities by priority, history from the newest, examples', () => {
    const entities = [
      entity({ identifier: 'low', text: text(50), priority: 1 }),
      entity({ identifier: 'high', text: text(60), priority: 9, position: { at: 'in_chat', depth: 0, order: 0 } }),
      entity({ identifier: 'contract', text: text(30), priority: 0, forbidOverride: true }),
    ]
    const examples = [entity({ identifier: 'example.1', text: text(10) })]
    const conversation = chat(text(20), text(20), text(20))
    const mandatory = perRequest + 30 + overhead + 20 + overhead
    const steps = [mandatory, 60 + overhead, 50 + overhead, 20 + overhead, 20 + overhead, 10 + overhead]
    const expected = [
      ['contract', 'question'],
      ['contract', 'question', 'high'],
      ['low', 'contract', 'question', 'high'],
      ['low', 'contract', 'history.1', 'question', 'high'],
      ['low', 'contract', 'history.1', 'question', 'high'],
      ['low', 'contract', 'example.1', 'history.1', 'question', 'high'],
    ]
    let available = 0
    for (const [step, tokens] of steps.entries()) {
      available += tokens
      const assembly = assemble(request({ entities, examples, conversation, ...leaving(available) }))
      expect(assembly.entities.map(({ recorded }) => recorded.identifier)).toEqual(expected[step])
      expect(assembly.tokens).toMatchObject({ used: available, tools: 100, reserve: 900 })
    }
  })

  it('skips what does not fit and still sends smaller entities after it', () => {
    const entities = [
      entity({ identifier: 'big', text: text(500), priority: 9 }),
      entity({ identifier: 'small', text: text(5), priority: 1 }),
    ]
    const assembly = assemble(request({ entities, conversation: chat('hi'), ...leaving(100) }))
    expect(assembly.entities.map(({ recorded }) => recorded.identifier)).toEqual(['small', 'question'])
    expect(assembly.dropped).toEqual([{ identifier: 'big', source: 'world', source_id: null, tokens: 504, reason: 'budget' }])
  })

  it('stops at the first message that does not fit, with no hole, and records it and the older ones', () => {
    const conversation = chat(text(5), text(5), text(5), text(400), text(5), text(5), text(5))
    const assembly = assemble(request({ conversation, ...leaving(300) }))
    expect(assembly.messages).toHaveLength(3)
    const record = { identifier: 'history', source: 'conversation' }
    expect(assembly.dropped).toEqual([
      { ...record, source_id: testId(4), tokens: 404, reason: 'message_too_large', nodes: 1 },
      { ...record, source_id: testId(3), tokens: 27, reason: 'older_than_dropped', nodes: 3 },
    ])
    const tight = assemble(request({ conversation: chat(text(20), text(20), text(5)), ...leaving(perRequest + 9 + 24) }))
    expect(tight.dropped).toEqual([{ ...record, source_id: testId(1), tokens: 24, reason: 'budget', nodes: 1 }])
  })

  it('fails with the tokens of each entity where the mandatory part alone is too large', () => {
    const entities = [
      entity({ identifier: 'contract', text: text(30), forbidOverride: true }),
      entity({ identifier: 'soft', text: text(9000) }),
    ]
    const overflow = (): unknown => assemble(request({ entities, conversation: chat('old', 'old', text(80)), ...leaving(100) }))
    expect(overflow).toThrow(ContextOverflowError)
    try {
      overflow()
    } catch (error) {
      expect(error).toMatchObject({
        available: 100,
        needed: 121,
        tokensPerEntity: [
          { identifier: 'contract', tokens: 34 },
          { identifier: 'question', tokens: 84 },
          { identifier: 'request', tokens: 3 },
        ],
      })
    }
  })

  it('sends a heading with its first member, and only with one', () => {
    const heading = inChat('heading', 1, 0, { group: 'memory', heading: true, text: text(10) })
    const member = (name: string, length: number, priority: number) => inChat(name, 1, 1, { group: 'memory', text: text(length), priority })
    const entities = [heading, member('m1', 40, 9), member('m2', 30, 8)]
    const base = perRequest + 'hi'.length + overhead
    const sent = (tokens: number): string[] =>
      assemble(request({ entities, conversation: chat('hi'), ...leaving(tokens) })).entities.map(({ recorded }) => recorded.identifier)
    expect(sent(base + 14 + 44 + 34)).toEqual(['heading', 'm1', 'm2', 'question'])
    expect(sent(base + 14 + 44)).toEqual(['heading', 'm1', 'question'])
    expect(sent(base + 14 + 43)).toEqual(['heading', 'm2', 'question'])
    const none = assemble(request({ entities, conversation: chat('hi'), ...leaving(base + 40) }))
    expect(none.entities.map(({ recorded }) => recorded.identifier)).toEqual(['question'])
    expect(none.dropped.map(({ identifier, reason }) => [identifier, reason])).toEqual([
      ['m1', 'budget'],
      ['m2', 'budget'],
      ['heading', 'heading_without_members'],
    ])
  })

  it('stops at the first example that does not fit', () => {
    const examples = [
      entity({ identifier: 'e1', text: text(5) }),
      entity({ identifier: 'e2', text: text(50) }),
      entity({ identifier: 'e3', text: text(5) }),
    ]
    const assembly = assemble(request({ examples, conversation: chat('hi'), ...leaving(40) }))
    expect(assembly.entities.map(({ recorded }) => recorded.identifier)).toEqual(['e1', 'question'])
    expect(assembly.dropped.map(({ identifier }) => identifier)).toEqual(['e2', 'e3'])
  })
})

describe('what is refused', () => {
  it('M6: nodes that are not one line of ancestors', () => {
    const conversation = chat('one', 'two', 'three')
    const sibling = conversation.map((node, index) => (index === 2 ? { ...node, parent_id: testId(77) } : node))
    expect(() => assemble(request({ conversation: sibling }))).toThrow(NotAncestorsError)
    const [, middle] = conversation
    expect(() => assemble(request({ conversation: conversation.filter((node) => node !== middle) }))).toThrow(NotAncestorsError)
  })

  it('M10: text that no content records', () => {
    const conversation = chat('one').map((node) => ({ ...node, content_id: null }))
    expect(() => assemble(request({ conversation }))).toThrow(UnreferencedTextError)
  })

  it('a prompt without a message of the user', () => {
    expect(() => assemble(request({ conversation: path([{ role: 'character', text: 'hello' }]) }))).toThrow(MissingUserMessageError)
    expect(() => assemble(request({ conversation: [], entities: [entity({ identifier: 'a', text: 'b' })] }))).toThrow(
      MissingUserMessageError,
    )
  })

  it('not an instruction in the user role where there is no conversation', () => {
    const entities = [
      entity({ identifier: 'task', text: 'Extract.', forbidOverride: true }),
      entity({ identifier: 'dialogue', text: 'A: hi', role: 'user', forbidOverride: true, position: { at: 'relative', rank: 900 } }),
    ]
    expect(lines(assemble(request({ conversation: [], entities })))).toEqual(['system: Extract.', 'user: A: hi'])
  })
})
