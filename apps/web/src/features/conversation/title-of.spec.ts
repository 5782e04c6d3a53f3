import { describe, expect, it } from 'vitest'
import { titleOf } from './title-of.ts'

describe('titleOf', () => {
  it('takes the first line without marks', () => {
    expect(titleOf('  **Good** evening.\nAnd more.')).toBe('Good evening.')
  })

  it('cuts long lines between words, Chinese between characters, never inside an emoji', () => {
    expect(titleOf('word '.repeat(30))).toBe('word word word word word word word word word…')
    expect(titleOf('潮'.repeat(60))).toBe(`${'潮'.repeat(48)}…`)
    expect(titleOf('🌊'.repeat(60))).toBe(`${'🌊'.repeat(48)}…`)
  })

  it('is empty for what says nothing', () => {
    expect(titleOf(' \n ')).toBe('')
  })
})
