import { describe, expect, it } from 'vitest'
import { exportCard, parseCard } from './cards/index.ts'
import { demoCardSource } from './demo-card.ts'

describe('demoCard', () => {
  const { card, specVersion, report } = parseCard(Buffer.from(demoCardSource))

  it('is a whole V3 card with nothing to report', () => {
    expect({ specVersion, report }).toEqual({ specVersion: 'v3', report: [] })
    expect(card).toMatchObject({ name: 'Qinghe 青禾', nickname: 'Qinghe' })
    const texts = [
      card.description,
      card.personality,
      card.scenario,
      card.firstMessage,
      card.exampleMessages,
      card.systemPrompt,
      card.postHistoryInstructions,
      card.creatorNotes,
    ]
    for (const text of texts) expect(text.length).toBeGreaterThan(100)
    for (const text of [card.systemPrompt, card.postHistoryInstructions]) expect(text).toContain('{{original}}')
    expect(card.alternateGreetings[0]).toMatch(/\p{Script=Han}/u)
    expect(card.book?.entries).toHaveLength(5)
  })

  it('comes out of a JSON export byte for byte, and out of a PNG unchanged', () => {
    expect(Buffer.from(exportCard({ source: demoCardSource }, 'json-v3')).toString()).toBe(demoCardSource)
    expect(parseCard(exportCard({ source: demoCardSource }, 'png')).card).toEqual(card)
  })
})
