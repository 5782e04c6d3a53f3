import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { statementsOf } from './sql-statements.ts'

describe('statementsOf', () => {
  it.each<[sql: string, statements: string[][]]>([
    ['', []],
    [' ;; ', []],
    ['SELECT 1; Update t SET a = 2', [['select'], ['update', 't', 'set', 'a']]],
    ['-- SET x;\nSELECT f(1)', [['select', 'f', '(', ')']]],
    ['/* SET /* nested; */ x; */ RESET ALL', [['reset', 'all']]],
    [
      "SELECT 'it''s; SET x'; RESET a",
      [
        ['select', "''"],
        ['reset', 'a'],
      ],
    ],
    [
      "SELECT E'\\'; SET x'; RESET a",
      [
        ['select', "''"],
        ['reset', 'a'],
      ],
    ],
    ['SELECT "a;""b" FROM t', [['select', "''", 'from', 't']]],
    ['DO $$ BEGIN; SET x; END $$; SELECT $1', [['do', "''"], ['select']]],
    [
      'DO $f$ $$ ; $f$; SELECT a$b$c',
      [
        ['do', "''"],
        ['select', 'a$b$c'],
      ],
    ],
    ["SELECT 'without its end; SET x", [['select', "''"]]],
    ['SELECT 1 /* without its end; SET x', [['select']]],
  ])('%s', (sql, statements) => {
    expect(statementsOf(sql)).toEqual(statements)
  })

  it('sees nothing inside a string, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(statementsOf(`SELECT '${text.replaceAll("'", "''")}'; RESET a`)).toEqual([
          ['select', "''"],
          ['reset', 'a'],
        ])
      }),
    )
  })
})
