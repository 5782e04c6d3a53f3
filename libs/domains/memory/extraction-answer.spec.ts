import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PROPOSALS_MAX, readDecisions, readJsonObject, readProposals, sift, textProblem } from './extraction-answer.ts'
import { dedupeQuestion, DEDUPE_INSTRUCTIONS, EXTRACTION_INSTRUCTIONS, extractionQuestion, secondTry } from './extraction-prompt.ts'

const proposal = {
  content: 'The user likes tea.',
  type: 'preference' as const,
  priority: 0.5,
  confidence: 0.9,
  sensitive: false,
  source_message_ids: ['m1'],
}
const messages = [
  { id: 'm1', role: 'user' as const },
  { id: 'm2', role: 'character' as const },
]
const siftOne = (over: Partial<typeof proposal>, shown: string[] = []) =>
  sift({ proposals: [{ ...proposal, ...over }], messages, instructions: EXTRACTION_INSTRUCTIONS, shown })

describe('readJsonObject', () => {
  it.each(['{"a":1}', '```json\n{"a":1}\n```', 'Here it is: {"a":1} I hope it helps.'])('finds the object in %s', (text) => {
    expect(readJsonObject(text)).toEqual({ ok: true, value: { a: 1 } })
  })

  it.each(['', 'no', '[1]', '{"a":', 'null', '"text"'])('says that %s is none', (text) => {
    expect(readJsonObject(text).ok).toBe(false)
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(typeof readJsonObject(text).ok).toBe('boolean')
        expect(typeof readProposals(text).ok).toBe('boolean')
        expect(typeof readDecisions(text).ok).toBe('boolean')
      }),
    )
  })
})

describe('readProposals', () => {
  it('takes what is good and says what is wrong with the rest', () => {
    const read = readProposals(
      JSON.stringify({ proposals: [proposal, { ...proposal, type: 'gossip' }, { ...proposal, content: '  ' }, 7] }),
    )
    expect(read.ok && { ...read.value, problems: read.value.problems.length }).toEqual({ proposals: [proposal], invalid: 3, problems: 3 })
    expect(read.ok && read.value.problems[0]).toMatch(/^proposals\[1\]\.type: /)
  })

  it('is bounded', () => {
    const read = readProposals(JSON.stringify({ proposals: Array.from({ length: PROPOSALS_MAX + 5 }, () => proposal) }))
    expect(read.ok && [read.value.proposals.length, read.value.invalid]).toEqual([PROPOSALS_MAX, 5])
  })

  it('is no answer without a list', () => {
    expect(readProposals('{"proposals":{}}')).toEqual({ ok: false, problems: ['"proposals" is missing or no list'] })
  })
})

describe('sift', () => {
  it('keeps what rests on real messages', () => {
    expect(siftOne({}).kept).toEqual([proposal])
  })

  it.each([
    ['no_source', { source_message_ids: [] }],
    ['outside_canon', { source_message_ids: ['m1', 'elsewhere'] }],
    ['echo', { content: 'Rather propose nothing than noise.' }],
    ['echo', { content: 'write in the language of the message that it comes from' }],
    ['empty_after_scrub', { content: '4111 1111 1111 1111' }],
  ])('drops as %s: %j', (reason, over) => {
    expect(siftOne(over)).toEqual({ kept: [], dropped: [reason] })
  })

  it('drops what the model was shown only where no person said it', () => {
    const shown = ['The user likes tea in the early morning.']
    const content = 'The user likes tea in the early morning'
    expect(siftOne({ content, source_message_ids: ['m2'] }, shown).dropped).toEqual(['echo'])
    expect(siftOne({ content, source_message_ids: ['m1', 'm2'] }, shown).kept).toHaveLength(1)
    expect(siftOne({ content: 'The user never likes tea in the early morning', source_message_ids: ['m2'] }, shown).kept).toHaveLength(1)
  })

  it('takes no sentence of its own instructions, however it is dressed (R14)', () => {
    for (const line of EXTRACTION_INSTRUCTIONS.split('\n').filter((text) => text.length > 30)) {
      const content = line.replace(/^\d+\. /, '').toUpperCase()
      expect([content, siftOne({ content }).dropped]).toEqual([content, ['echo']])
    }
  })
})

describe('textProblem', () => {
  it('refuses an empty or echoed merge', () => {
    expect(textProblem(' … ', DEDUPE_INSTRUCTIONS)).not.toBeNull()
    expect(textProblem('When in doubt, store.', DEDUPE_INSTRUCTIONS)).not.toBeNull()
    expect(textProblem('The user likes green and black tea.', DEDUPE_INSTRUCTIONS)).toBeNull()
  })
})

describe('questions', () => {
  it('carry the request as JSON and name their answer', () => {
    const question = extractionQuestion({ messages: [], zone: 'UTC' })
    expect(question.messages.map((message) => message.role)).toEqual(['system', 'user'])
    expect(JSON.parse(question.messages[1]?.content ?? '')).toEqual({ messages: [], zone: 'UTC' })
    expect(question.responseFormat.name).toBe('memory_extraction')
    expect(dedupeQuestion([proposal], []).responseFormat.name).toBe('memory_dedupe')
  })

  it('are asked again with the bad answer and what is wrong with it, both bounded', () => {
    const again = secondTry(
      extractionQuestion({ messages: [], zone: 'UTC' }),
      'x'.repeat(100_000),
      Array.from({ length: 100 }, (_, at) => `problem ${at}`),
    )
    expect(again.messages.map((message) => message.role)).toEqual(['system', 'user', 'assistant', 'user'])
    expect(again.messages[2]?.content.length).toBeLessThanOrEqual(8_000)
    expect(again.messages[3]?.content).toContain('problem 0')
    expect(again.messages[3]?.content).not.toContain('problem 20')
  })
})
