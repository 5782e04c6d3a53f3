import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryType, SensitiveTopic } from '#contracts'
import { automaticTypes, classify, undoUntil } from './classify.ts'
import { sensitiveTopics } from './sensitive-topics.ts'

describe('classify', () => {
  it.each([
    ['The user likes jasmine tea', 'preference'],
    ['The user loves hiking in the mountains', 'preference'],
    ['用户喜欢喝茉莉花茶', 'preference'],
    ['用户计划明年春天去京都看樱花', 'plan'],
    ['用户周末去爬了山', 'event'],
    ['周游世界', 'plan'],
    ['在周末吃夜宵', 'preference'],
    ["The user's favourite player is Ronaldo", 'preference'],
  ] as const)('lets %s take effect at once', (text, type) => {
    expect(classify({ text, type, sensitive: false })).toEqual({ level: 'explicit', sensitive: false, topics: [] })
  })

  it.each([
    ['The user is allergic to peanuts', 'health'],
    ['The user takes medication for anxiety', 'health'],
    ['用户对花生过敏', 'health'],
    ['用户最近失眠', 'health'],
    ['The user earns 3000 a month', 'money'],
    ['The user paid $40 for it', 'money'],
    ['用户的月薪是两万', 'money'],
    ['The user was born in Lyon', 'identity'],
    ['用户的生日是五月一日', 'identity'],
    ['Write to anna@example.org', 'identity'],
    ['The user is gay', 'sexuality'],
    ['用户去年出柜了', 'sexuality'],
    ['The user goes to church on Sundays', 'belief'],
    ['用户信佛', 'belief'],
    ["The user's sister lives in Oslo", 'third_person'],
    ['用户的妈妈喜欢花', 'third_person'],
    ['用户和她一起看了电影', 'third_person'],
  ] as const)('makes %s wait: %s', (text, topic) => {
    const { level, sensitive, topics } = classify({ text, type: 'preference', sensitive: false })
    expect({ level, sensitive }).toEqual({ level: 'heavy', sensitive: true })
    expect(topics).toContain(topic)
  })

  it.each(['The user got married in June', 'The user quit drugs', '用户下个月离婚'])('makes what changes a life wait: %s', (text) => {
    expect(classify({ text, type: 'event', sensitive: false }).level).toBe('heavy')
  })

  it('makes every type off the allow-list wait', () => {
    for (const type of MemoryType.options) {
      expect(classify({ text: 'The user likes tea', type, sensitive: false }).level).toBe(automaticTypes.has(type) ? 'explicit' : 'heavy')
    }
  })

  it('is never less strict than the model or the words', () => {
    const words = fc.constantFrom('tea', 'my doctor', '茶', '工资', 'hiking', 'her brother', '去爬山', 'church')
    fc.assert(
      fc.property(fc.array(words, { maxLength: 4 }), fc.constantFrom(...MemoryType.options), fc.boolean(), (parts, type, sensitive) => {
        const text = parts.join(' ')
        const result = classify({ text, type, sensitive })
        if (sensitive || sensitiveTopics(text).length > 0 || !automaticTypes.has(type)) expect(result.level).toBe('heavy')
        expect(result.sensitive).toBe(sensitive || result.topics.length > 0)
        expect(SensitiveTopic.array().safeParse(result.topics).success).toBe(true)
      }),
    )
  })
})

describe('undoUntil', () => {
  it('is seven days on', () => {
    expect(undoUntil(new Date('2026-02-26T10:00:00.000Z')).toISOString()).toBe('2026-03-05T10:00:00.000Z')
  })
})
