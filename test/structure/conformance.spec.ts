import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { clauses } from '../conformance/clauses.ts'
import { judge, readReport, show } from '../conformance/matrix.ts'
import type { Clause, TestResult } from '../conformance/matrix.ts'
import { repository } from './fixture.ts'

describe('the clauses of the Kernel', () => {
  it('are many, each with an id of its own', () => {
    expect(clauses.length).toBeGreaterThan(100)
    expect(new Set(clauses.map(({ id }) => id)).size).toBe(clauses.length)
  })

  it('have at least one test each', () => {
    expect(clauses.filter(({ tests }) => Object.values(tests).flat().length === 0).map(({ id }) => id)).toEqual([])
  })

  it('name tests that are there', () => {
    const texts = new Map<string, string>()
    const text = (file: string): string => {
      const path = join(repository, file)
      const known = texts.get(file) ?? (existsSync(path) ? readFileSync(path, 'utf8') : '')
      texts.set(file, known)
      return known
    }
    // Titles of a table are made of its rows; whether the whole name matches is seen by `npm run conformance`.
    const isThere = (file: string, name: string): boolean => text(file).includes(name) || (titled[file]?.test(name) ?? false)
    const missing = clauses.flatMap(({ id, tests }) =>
      Object.entries(tests).flatMap(([file, names]) =>
        names.filter((name) => !isThere(file, name)).map((name) => `${id}: ${file} › ${name}`),
      ),
    )
    expect(missing).toEqual([])
  })
})

/** Names that are put together from a table's rows and so stand in no file as a whole. */
const titled: Record<string, RegExp> = {
  'test/structure/dictionary.spec.ts': /^[a-z_.]+ holds ids$/,
  'test/structure/lint.spec.ts': /^[a-z]+\([a-z-]+\) is an error$/,
  'libs/kernel/admission/admit.spec.ts': /^serve nothing else: same_(action|arguments|versions)$/,
  'libs/kernel/gate/forbidden-gate.spec.ts': /^irreversible_external under untrusted context$/,
  'test/ports/event-log.spec.ts': /^leaves out what the kill switch of its (owner|character) stops$/,
  'test/invariants/broken-resume.spec.ts': /^is not resumed by an answer: (approve|refuse)$/,
}

describe('the matrix', () => {
  const clause = (tests: Clause['tests']): Clause => ({ id: 'X', must: 'It holds.', tests })
  const ran = (status: string, name = 'a suite it holds'): TestResult => ({ file: 'test/x.spec.ts', name, status })
  const standing = (tests: Clause['tests'], results: TestResult[]) => judge([clause(tests)], results)[0]?.standing

  it('holds where every named test passed', () => {
    expect(standing({ 'test/x.spec.ts': ['it holds'] }, [ran('passed')])).toBe('passed')
  })

  it.each<[string, Clause['tests'], TestResult[]]>([
    ['one failed', { 'test/x.spec.ts': ['it holds'] }, [ran('passed'), ran('failed')]],
    ['one was skipped', { 'test/x.spec.ts': ['it holds'] }, [ran('skipped')]],
    ['a name matches none', { 'test/x.spec.ts': ['it holds', 'and this'] }, [ran('passed')]],
    ['a file was not run', { 'test/x.spec.ts': ['it holds'], 'test/y.spec.ts': ['it holds'] }, [ran('passed')]],
    ['a file could not be loaded', { 'test/x.spec.ts': ['it holds'] }, [ran('failed', '')]],
  ])('fails where %s', (_, tests, results) => {
    expect(standing(tests, results)).toBe('failed')
  })

  it('says where there is no test, and what needs the other tier', () => {
    expect(standing({}, [ran('passed')])).toBe('no test')
    expect(standing({ 'test/x.full.spec.ts': ['it holds'] }, [])).toBe('other tier')
    expect(standing({ 'test/x.full.spec.ts': ['it holds'], 'test/x.spec.ts': ['it holds'] }, [ran('passed')])).toBe('passed')
    expect(show(judge([clause({})], [])).at(-1)).toBe('Open: X')
  })

  it('reads what Vitest reports', () => {
    const report = {
      testResults: [
        { name: '/r/test/x.spec.ts', message: '', assertionResults: [{ fullName: 'a suite it holds', status: 'passed' }] },
        { name: '/r/test/y.spec.ts', message: 'no such import', assertionResults: [] },
      ],
    }
    expect(readReport(JSON.stringify(report), '/r')).toEqual([ran('passed'), { file: 'test/y.spec.ts', name: '', status: 'failed' }])
  })
})
