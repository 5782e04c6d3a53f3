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

  it.each([[[]], [['--name', 'x']], [['token', 'x']], [['token', '--name']], [['token', '-n', 'x']]])('refuses %j', (argv) => {
    expect(() => parseArguments(argv)).toThrow(UsageError)
  })
})
