import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NodePart } from '#contracts'
import { renderRequest } from '../projection/render-request.ts'
import { rebuildRequest } from '../projection/rebuild-request.ts'
import { assemble } from './assemble.ts'
import type { AssembleInput, Assembly } from './assemble.ts'
import type { PromptEntity } from './entity.ts'
import { ContextOverflowError } from './prompt-errors.ts'
import { memoryEntities } from './recall-entities.ts'
import { contentOf, entity, loaderOf, path, recorded, request, testFrame, testId } from './test-prompts.ts'
import type { Line } from './test-prompts.ts'

const word = fc.constantFrom('tea', '茶', 'night\n', '{{char}}', '{{random:a,b}}', '"quoted"', '😀', ' ')
const text = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '))

const position: fc.Arbitrary<PromptEntity['position']> = fc.oneof(
  fc.record({ at: fc.constant('relative' as const), rank: fc.integer({ min: 0, max: 1500 }) }),
  fc.record({ at: fc.constant('in_chat' as const), depth: fc.nat({ max: 6 }), order: fc.nat({ max: 3 }) }),
)

const entities = fc
  .array(
    fc.record({
      text,
      position,
      role: fc.constantFrom('system', 'user', 'assistant'),
      source: fc.constantFrom('persona_anchor', 'world', 'memory'),
      trust: fc.constantFrom('untrusted', 'workspace', 'trusted'),
      priority: fc.nat({ max: 3 }),
      forbidOverride: fc.boolean(),
      expand: fc.boolean(),
      stored: fc.boolean(),
    }),
    { maxLength: 7 },
  )
  .map((drafts) =>
    drafts.map(({ stored, ...draft }, index) =>
      entity({ ...draft, identifier: `e${index}`, contentRef: stored ? contentOf(100 + index, draft.text) : null }),
    ),
  )

const part: fc.Arbitrary<NodePart> = fc.record({ kind: fc.constantFrom('text', 'text', 'steer', 'reasoning'), text })
const line: fc.Arbitrary<Line> = fc.oneof(
  fc.record({ role: fc.constantFrom('user', 'character', 'narrator'), text, partial: fc.boolean() }),
  fc.record({ role: fc.constant('character' as const), parts: fc.array(part, { maxLength: 3 }) }),
  fc.record({ role: fc.constantFrom('user', 'character'), deleted: fc.constant(true) }),
)
const conversation = fc
  .tuple(fc.array(line, { maxLength: 12 }), text)
  .map(([older, question]) => path([{ role: 'none' }, ...older, { role: 'user', text: `Q ${question}` }]))

const input: fc.Arbitrary<AssembleInput> = fc
  .record({ entities, examples: entities, conversation, window: fc.integer({ min: 50, max: 1200 }), toolTokens: fc.nat({ max: 20 }) })
  .map((fields) =>
    request({
      ...fields,
      reserve: 40,
      examples: fields.examples.map((one) => ({ ...one, identifier: `x${one.identifier}`, contentRef: null })),
    }),
  )

/** The assembly, or null where the mandatory part alone is too large. */
function tryAssemble(from: AssembleInput): Assembly | null {
  try {
    return assemble(from)
  } catch (error) {
    if (error instanceof ContextOverflowError) return null
    throw error
  }
}

const assembled = (check: (from: AssembleInput, assembly: Assembly) => void): void => {
  let checked = 0
  fc.assert(
    fc.property(input, (from) => {
      const assembly = tryAssemble(from)
      if (!assembly) return
      checked += 1
      check(from, assembly)
    }),
    { numRuns: 200 },
  )
  expect(checked).toBeGreaterThan(50)
}

const sentNodes = (from: AssembleInput, assembly: Assembly): string[] => {
  const ids = from.conversation.map((node) => node.node_id)
  return assembly.pieces.flatMap((piece) =>
    piece.kind === 'path' ? ids.slice(ids.indexOf(piece.from_node_id), ids.indexOf(piece.to_node_id) + 1) : [],
  )
}

const body = (assembly: Assembly): string => renderRequest({ frame: testFrame, messages: assembly.messages })

describe('every assembly', () => {
  it('keeps to the budget, and its entities account for every token', () => {
    assembled((from, { tokens, entities: sent, messages }) => {
      expect(tokens.used + tokens.reserve + tokens.tools).toBeLessThanOrEqual(from.window)
      expect(sent.reduce((sum, { recorded: { tokens: own } }) => sum + own, 3)).toBe(tokens.used)
      expect(messages.reduce((sum, { content }) => sum + content.length + 4, 3)).toBe(tokens.used)
    })
  })

  it("holds the user's last message", () => {
    assembled((from, { messages }) => {
      const question = from.conversation.at(-1)?.parts[0]?.text
      expect(messages.some(({ role, content }) => role === 'user' && content === question)).toBe(true)
    })
  })

  it('sends the end of the path without a hole, and accounts for the rest', () => {
    assembled((from, assembly) => {
      const sent = sentNodes(from, assembly)
      const first = from.conversation.findIndex((node) => node.node_id === sent[0])
      const speaking = (ids: readonly string[]): string[] =>
        ids.filter((id) =>
          from.conversation.some(
            (node) => node.node_id === id && node.parts.some((one) => one.kind !== 'reasoning' && one.text.trim() !== ''),
          ),
        )
      const expected = speaking(from.conversation.slice(first).map((node) => node.node_id)).filter((id) => id !== testId(1))
      expect(speaking(sent)).toEqual(expected)
      const dropped = assembly.dropped.reduce((sum, { nodes = 0 }) => sum + nodes, 0)
      const nodes = assembly.pieces.reduce((sum, piece) => sum + (piece.kind === 'path' ? piece.nodes : 0), 0)
      expect(nodes + dropped).toBe(speaking(from.conversation.slice(1).map((node) => node.node_id)).length)
    })
  })

  it('sends or accounts for each entity exactly once', () => {
    assembled((from, assembly) => {
      const given = [...from.entities, ...(from.examples ?? [])].map(({ identifier }) => identifier)
      const known = new Set(given)
      const seen = [
        ...assembly.entities.map(({ recorded: { identifier } }) => identifier),
        ...assembly.dropped.map(({ identifier }) => identifier),
      ]
      expect(seen.filter((identifier) => known.has(identifier)).sort()).toEqual([...given].sort())
    })
  })

  it('is the same for the same input', () => {
    assembled(({ countTokens, ...from }, assembly) => {
      expect(tryAssemble({ ...structuredClone(from), countTokens })).toEqual(assembly)
    })
  })

  it('M10: is rebuilt byte for byte from what is recorded', () => {
    assembled((from, assembly) => {
      const stored = recorded(from, assembly)
      expect(rebuildRequest(stored.projected, loaderOf(stored))).toMatchObject({ result: 'rebuilt', bodyText: body(assembly) })
    })
  })

  it('never trusts what is sent more than its least trusted part', () => {
    assembled((_from, { entities: sent, trust }) => {
      const order = ['untrusted', 'workspace', 'trusted']
      expect(order.indexOf(trust)).toBe(Math.min(...sent.map(({ recorded: { trust: own } }) => order.indexOf(own))))
    })
  })
})

describe('the beginning of the prompt', () => {
  const memories = (turn: number): PromptEntity[] =>
    memoryEntities([
      {
        memoryId: testId(600 + turn),
        versionId: testId(700 + turn),
        text: `memory ${turn}`,
        contentRef: contentOf(800 + turn, `memory ${turn}`),
        trust: 'workspace',
      },
    ])

  it('keeps its bytes from turn to turn until something is dropped: all but the recall and the newest question', () => {
    const standing = fc.array(fc.record({ text: fc.string({ minLength: 1, maxLength: 20 }), rank: fc.nat({ max: 900 }) }), { maxLength: 5 })
    fc.assert(
      fc.property(standing, fc.array(fc.string({ minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 8 }), (fixed, turns) => {
        const entitiesOf = (turn: number) => [
          ...fixed.map(({ text: own, rank }, index) => entity({ identifier: `s${index}`, text: own, position: { at: 'relative', rank } })),
          ...memories(turn),
        ]
        const told = turns.flatMap((own, index): Line[] => [
          { role: 'user', text: `q${index} ${own}` },
          { role: 'character', text: `a${index} ${own}` },
        ])
        let previous: string | null = null
        for (let turn = 0; turn < turns.length; turn++) {
          const assembly = assemble(request({ entities: entitiesOf(turn), conversation: path(told.slice(0, 2 * turn + 1)) }))
          expect(assembly.dropped.filter(({ reason }) => reason !== 'empty')).toEqual([])
          const recallAt = assembly.messages.findIndex(({ content }) => content.startsWith('[What you remember'))
          const whole = body(assembly)
          if (previous !== null) expect(whole.startsWith(previous)).toBe(true)
          const prefix = renderRequest({ frame: testFrame, messages: assembly.messages.slice(0, recallAt) })
          previous = prefix.slice(0, -']}'.length)
        }
      }),
    )
  })
})
