import { describe, expect, it } from 'vitest'
import { createLogger } from '#infra/logging/logger'
import { Lifecycle } from './lifecycle.ts'

const lifecycle = (): Lifecycle => new Lifecycle(createLogger('silent'))

describe('the life of a system', () => {
  it('ends last in, first out, each part once and each even where another fails', async () => {
    const life = lifecycle()
    const ended: string[] = []
    life.onClose('database', async () => void ended.push('database'))
    life.onClose('broken', () => Promise.reject(new Error('cannot')))
    life.onClose('server', async () => void ended.push('server'))
    await Promise.all([life.close(), life.close()])
    expect(ended).toEqual(['server', 'database'])
    expect(life.stopping.aborted).toBe(true)
  })

  it.each([
    ['all', ['anchors', 'answers', 'jobs']],
    ['bff', ['anchors', 'answers']],
    ['worker', ['anchors', 'jobs']],
  ] as const)('as %s starts %j, and ends it', async (role, names) => {
    const life = lifecycle()
    const heard: string[] = []
    const work = (name: string, of: 'bff' | 'worker' | 'any') =>
      life.addWork({
        name,
        role: of,
        start: async () => {
          heard.push(name)
          return async () => void heard.push(`${name} ended`)
        },
      })
    work('anchors', 'any')
    work('answers', 'bff')
    work('jobs', 'worker')
    await life.startWork(role)
    expect(heard).toEqual(names)
    await life.close()
    expect(heard).toEqual([...names, ...names.toReversed().map((name) => `${name} ended`)])
  })

  it('tells whoever waits that something vital is gone', async () => {
    const life = lifecycle()
    life.fail(new Error('gone'))
    await expect(life.failure).rejects.toThrow('gone')
  })
})
