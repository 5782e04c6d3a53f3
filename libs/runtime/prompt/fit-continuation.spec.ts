import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rebuildRequest } from '../projection/rebuild-request.ts'
import { renderRequest } from '../projection/render-request.ts'
import { assemble } from './assemble.ts'
import type { AssembleInput, Assembly } from './assemble.ts'
import { cutOfText } from './cut-message.ts'
import type { ContinuationMessage } from './entity.ts'
import { ContextOverflowError } from './prompt-errors.ts'
import { chat, contentOf, entity, loaderOf, recorded, request, testFrame, testId } from './test-prompts.ts'

type Told = { role: string; content: string | null; tool_calls?: { function: { arguments: string } }[] }

function acted(action: number, given: string, said: string | null = null): ContinuationMessage {
  const call = { id: testId(action), type: 'function', function: { name: 'look', arguments: given } }
  const text = JSON.stringify({ role: 'assistant', content: said, tool_calls: [call] })
  return { kind: 'acted', text, contentRef: null, derivedFrom: [testId(2000 + action)], trust: 'workspace' }
}

function observed(action: number, text: string, changes: Partial<ContinuationMessage> = {}): ContinuationMessage {
  const content = JSON.stringify({
    source: 'far.example',
    at: '2026-01-01T00:00:00.000Z',
    media_type: 'text/plain',
    trust: 'untrusted',
    text,
  })
  const message = JSON.stringify({ role: 'tool', tool_call_id: testId(action), content })
  return { kind: 'observed', text: message, contentRef: null, derivedFrom: [testId(3100 + action)], trust: 'untrusted', ...changes }
}

/** Turns in which a tool was called and brought a text each. */
const turns = (...texts: readonly string[]): ContinuationMessage[] =>
  texts.flatMap((text, index) => [acted(index, '{"at":"door"}'), observed(index, text)])

const system = entity({ identifier: 'contract', text: 'Our own rules.', source: 'system_contract', forbidOverride: true })
const persona = entity({ identifier: 'persona', text: 'p'.repeat(400), source: 'persona_anchor', priority: 800 })
const lore = entity({ identifier: 'lore', text: 'l'.repeat(300), source: 'world', priority: 500 })

const running = (continuation: readonly ContinuationMessage[], changes: Partial<AssembleInput> = {}): AssembleInput =>
  request({ entities: [system, persona], conversation: chat('Hello.', 'Hi.', 'Where is it?'), continuation, window: 5_000, ...changes })

/** What the results' texts are shown as, oldest first. */
function results({ messages }: Assembly): string[] {
  return messages.flatMap(({ role, content }) => {
    if (role !== 'tool') return []
    const told = JSON.parse((JSON.parse(content) as Told).content ?? '') as { text?: string }
    return [told.text ?? '']
  })
}

function expectFits(input: AssembleInput, assembly: Assembly): void {
  const { used, window, reserve, tools } = assembly.tokens
  expect(used).toBeLessThanOrEqual(window - reserve - tools)
  const sent = assembly.messages.reduce((sum, { content }) => sum + 4 + input.countTokens(content), 3)
  expect(sent).toBe(used)
}

/** From what is recorded, the very bytes again. */
function expectRebuilt(input: AssembleInput, assembly: Assembly): void {
  const stored = recorded(input, assembly)
  const bodyText = renderRequest({ frame: testFrame, messages: assembly.messages, layoutVersion: assembly.layoutVersion })
  expect(rebuildRequest(stored.projected, loaderOf(stored))).toMatchObject({ result: 'rebuilt', bodyText })
}

function assembled(input: AssembleInput): Assembly {
  const assembly = assemble(input)
  expectFits(input, assembly)
  expectRebuilt(input, assembly)
  expect(assemble(input)).toEqual(assembly)
  return assembly
}

describe('what a run saw', () => {
  it('is sent as it is where it fits', () => {
    const input = running(turns('a'.repeat(500), 'b'.repeat(500)))
    const assembly = assembled(input)
    expect(results(assembly)).toEqual(['a'.repeat(500), 'b'.repeat(500)])
    expect(assembly.dropped).toEqual([])
  })

  it('is shown in part where it is larger than the window: beginning and end, and how much is missing', () => {
    const text = `START${'x'.repeat(400_000)}END`
    const input = running(turns(text))
    const assembly = assembled(input)
    const [shown = ''] = results(assembly)
    expect(shown).toMatch(
      /^STARTx+\n\[… (\d+) of 400008 characters are left out here to fit the window; the record has them all …\]\nx+END$/,
    )
    const missing = Number(/(\d+) of/.exec(shown)?.[1])
    expect(missing + (shown.match(/x/g)?.length ?? 0) + 8).toBe(400_008)
    // Nothing is left out that would have found room.
    expect(assembly.tokens.used).toBeGreaterThan(3_980)
    const whole = input.continuation?.[1]?.text ?? ''
    const cut = assembly.messages.find(({ role }) => role === 'tool')?.content ?? ''
    expect(assembly.dropped).toMatchObject([
      { identifier: 'continuation.2', reason: 'cut_to_fit', tokens: whole.length - cut.length },
      { identifier: 'history' },
      { identifier: 'history' },
    ])
    expect(JSON.parse((JSON.parse(cut) as Told).content ?? '')).toMatchObject({
      shown: 'in_part',
      source: 'far.example',
      trust: 'untrusted',
    })
    expect(assembly.entities.find(({ recorded: { identifier } }) => identifier === 'continuation.2')?.recorded).toMatchObject({
      reason: 'observed_in_part',
      trust: 'untrusted',
    })
    expect(assembly.derived.find(({ text: stored }) => stored === cut)?.derivedFrom).toEqual([testId(3100)])
  })

  it('leaves who the character is and what was asked; recollections, lore and history give way', () => {
    const input = running(turns('x'.repeat(9_000)), { entities: [system, lore, persona] })
    const assembly = assembled(input)
    const sent = assembly.messages.map(({ content }) => content)
    for (const text of [system.text, persona.text, 'Where is it?']) expect(sent).toContain(text)
    expect(assembly.dropped.map(({ identifier, reason }) => `${identifier} ${reason}`)).toContain('lore budget')
    const weighty = { ...lore, priority: 900 }
    const both = assembled(running(turns('x'.repeat(9_000)), { entities: [system, weighty, persona] })).messages.map(
      ({ content }) => content,
    )
    expect(both).toContain(weighty.text)
    expect(both).toContain(persona.text)
  })

  it('gives way from the oldest on, the newest last', () => {
    const texts = ['a', 'b', 'c', 'd', 'e', 'f'].map((sign) => sign.repeat(1_200))
    const shown = results(assembled(running(turns(...texts), { window: 8_000 }))).map((text) => text.length)
    expect(shown.at(-1)).toBe(1_200)
    expect(shown).toEqual([...shown].sort((left, right) => left - right))
    expect(shown[0]).toBeLessThan(300)
  })

  it('lets one that takes more than half the room give way before older ones', () => {
    const texts = ['a'.repeat(600), 'b'.repeat(600), 'c'.repeat(50_000)]
    const [first = '', second = '', third = ''] = results(assembled(running(turns(...texts), { window: 8_000 })))
    expect([first, second]).toEqual(texts.slice(0, 2))
    expect(third.length).toBeGreaterThan(1_000)
  })

  it('lets words that it went back for give way after all other results', () => {
    const continuation = [...turns('r'.repeat(2_000), 'b'.repeat(2_000), 'c'.repeat(2_000))]
    continuation[1] = observed(0, 'r'.repeat(2_000), { recalled: true })
    const [recalled, , newest = ''] = results(assembled(running(continuation)))
    expect(recalled).toBe('r'.repeat(2_000))
    expect(newest.length).toBeLessThan(2_000)
  })

  it('gives way before what it called and said, and those before there is no answer at all', () => {
    const given = JSON.stringify({ query: 'q'.repeat(2_500) })
    const input = running([acted(1, given, 's'.repeat(900)), observed(1, 'x'.repeat(2_000)), acted(2, given), observed(2, 'y')], {
      window: 6_500,
    })
    const assembly = assembled(input)
    const calls = assembly.messages.flatMap(({ content, json }) => (json ? ((JSON.parse(content) as Told).tool_calls ?? []) : []))
    for (const { function: call } of calls) expect(typeof JSON.parse(call.arguments)).toBe('object')
    expect(calls[0]?.function.arguments).toContain('shown_in_part')
    expect(calls[1]?.function.arguments).toBe(given)
  })

  it('is an overflow only where the fixed part does not fit', () => {
    const question = 'Q'.repeat(4_000)
    const input = running(turns('x'.repeat(50_000)), { conversation: chat(question) })
    expect(() => assemble(input)).toThrow(ContextOverflowError)
    expect(() => assembled(running(turns('x'.repeat(50_000)), { conversation: chat(question.slice(0, 2_700)) }))).not.toThrow()
  })

  it('takes what is interjected as it is', () => {
    const steer: ContinuationMessage = {
      kind: 'steer',
      text: 'No, the other door. '.repeat(40),
      contentRef: contentOf(77, 'No, the other door. '.repeat(40)),
      derivedFrom: [],
      trust: 'trusted',
    }
    const { messages } = assembled(running([...turns('x'.repeat(50_000)), steer]))
    expect(messages.map(({ content }) => content)).toContain(steer.text)
  })

  it('fits whatever it is, halves no sign, and rebuilds to the same bytes', () => {
    const piece = fc.constantFrom('a', '"', '\n', '门', '😀', '\u{2A6A5}', ' tea ')
    const text = fc
      .tuple(fc.array(piece, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 2_000 }))
      .map(([few, times]) => few.join('').repeat(times))
    const bytes = (counted: string): number => Buffer.byteLength(counted)
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), fc.boolean(), (texts, countsBytes) => {
        const input = running(turns(...texts), { window: 6_000, ...(countsBytes ? { countTokens: bytes } : {}) })
        const assembly = assembled(input)
        for (const { content } of assembly.messages) expect(content.isWellFormed()).toBe(true)
        for (const shown of results(assembly)) expect(shown.isWellFormed()).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
})

describe('a cut', () => {
  it('halves no sign at any place', () => {
    const text = '😀'.repeat(200)
    for (let units = 0; units < 120; units++) {
      const cut = cutOfText(text)(units)
      expect(cut.isWellFormed()).toBe(true)
      const left = Number(/(\d+) of 200/.exec(cut)?.[1])
      expect(left + [...cut].filter((sign) => sign === '😀').length).toBe(200)
    }
  })

  it('is none where it would save nothing', () => {
    expect(cutOfText('short')(0)).toBe('short')
  })
})
