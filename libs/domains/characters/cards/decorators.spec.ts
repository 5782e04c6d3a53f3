import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ignoredDecorators, joinDecorators, knownDecorators, splitDecorators } from './decorators.ts'

describe('splitDecorators', () => {
  it('cuts decorator lines off the head, with fallbacks and blank lines', () => {
    expect(splitDecorators('@@risu_only 4\n@@@agnai_only 4\n@@@depth 5\n\n@@activate\n\nThe lake.\n@@depth 1')).toEqual({
      decorators: [
        {
          name: 'risu_only',
          value: '4',
          fallbacks: [
            { name: 'agnai_only', value: '4' },
            { name: 'depth', value: '5' },
          ],
        },
        { name: 'activate', value: '', fallbacks: [] },
      ],
      content: 'The lake.\n@@depth 1',
    })
  })

  it.each(['', '\n\nText', '@@', '@@ depth', '@@@depth 4', 'user@@host'])('leaves %j alone', (content) => {
    expect(splitDecorators(content)).toEqual({ decorators: [], content })
  })

  it('gives back what joinDecorators writes', () => {
    const part = fc.record({ name: fc.stringMatching(/^[a-z_]{1,8}$/), value: fc.stringMatching(/^([a-z0-9]+(,[a-z0-9]+)*)?$/) })
    const decorator = fc.tuple(part, fc.array(part, { maxLength: 2 })).map(([own, fallbacks]) => ({ ...own, fallbacks }))
    fc.assert(
      fc.property(fc.array(decorator, { maxLength: 4 }), fc.stringMatching(/^[a-z][\s\S]*$/), (decorators, content) => {
        expect(splitDecorators(joinDecorators({ decorators, content }))).toEqual({ decorators, content })
      }),
    )
  })

  it('stays quick on a long line of blanks', () => {
    const content = `@@note${' '.repeat(1_000_000)}x`
    expect(splitDecorators(content).decorators[0]?.value).toBe('x')
  })
})

describe('knownDecorators', () => {
  const { decorators } = splitDecorators('@@odd 1\n@@@depth 3\n@@depth 9\n@@keep_activate_after_match\nx')

  it('takes the first known name of a chain, and of a repeated name the first', () => {
    expect([...knownDecorators(decorators)]).toEqual([['depth', '3']])
  })

  it('tells which ones mean nothing here', () => {
    expect(ignoredDecorators(decorators).map(({ name }) => name)).toEqual(['keep_activate_after_match'])
  })
})
