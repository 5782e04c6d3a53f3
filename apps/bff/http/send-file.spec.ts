import { describe, expect, it } from 'vitest'
import { attachment } from './send-file.ts'

describe('the name of a sent file', () => {
  it('is plain where it can be', () => {
    expect(attachment('Qinghe.json')).toBe(`attachment; filename="Qinghe.json"; filename*=UTF-8''Qinghe.json`)
  })

  it('keeps every script and hurts no file system or header (case C5)', () => {
    const header = attachment('A/B: "测试"\r\nX: y.png')
    expect(header).not.toMatch(/[\r\n]/)
    expect(header).toContain('filename="A_B_ _')
    expect(header).toContain(`filename*=UTF-8''A_B_%20_%E6%B5%8B%E8%AF%95_`)
  })

  it('is cut without breaking a character', () => {
    expect(() => attachment('😀'.repeat(200))).not.toThrow()
    expect(attachment('\ud800')).toContain('%EF%BF%BD')
  })
})
