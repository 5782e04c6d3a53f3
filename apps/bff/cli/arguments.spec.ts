import { describe, expect, it } from 'vitest'
import { UsageError } from '../admin/admin-verbs.ts'
import { parseArguments } from './arguments.ts'

describe('the command line', () => {
  it('reads a verb and its options, in both spellings', () => {
    expect(parseArguments(['token', '--name', 'my laptop', '--scopes=read,write'])).toEqual({
      verb: 'token',
      options: { name: 'my laptop', scopes: 'read,write' },
    })
    expect(parseArguments(['verify'])).toEqual({ verb: 'verify', options: {} })
    expect(parseArguments(['token', '--name='])).toEqual({ verb: 'token', options: { name: '' } })
  })

  it('names what a verb takes without a name, and no more than that', () => {
    const operandsOf = (verb: string) => (verb === 'archive' ? ['direction', 'file'] : [])
    expect(parseArguments(['archive', 'out', 'a b.jsonl'], operandsOf).options).toEqual({ direction: 'out', file: 'a b.jsonl' })
    expect(parseArguments(['archive', '--erasures', 'x', 'in'], operandsOf).options).toEqual({ direction: 'in', erasures: 'x' })
    expect(() => parseArguments(['archive', 'out', 'a', 'b'], operandsOf)).toThrow(UsageError)
    expect(() => parseArguments(['archive', '-o', 'a'], operandsOf)).toThrow(UsageError)
    expect(() => parseArguments(['token', 'out'], operandsOf)).toThrow(UsageError)
  })

  it.each([[[]], [['--name', 'x']], [['token', 'x']], [['token', '--name']], [['token', '-n', 'x']]])('refuses %j', (argv) => {
    expect(() => parseArguments(argv)).toThrow(UsageError)
  })
})
