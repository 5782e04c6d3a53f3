import { describe, expect, it } from 'vitest'
import { LingtaiError, Problem } from '#contracts'
import { asLingtaiError, problemOf } from './problem.ts'

const codeOf = (error: unknown): string => asLingtaiError(error).code

describe('errors as problems', () => {
  it('keeps a refusal with its fields and data', () => {
    const problem = problemOf(
      new LingtaiError('edit_forks', 'No.', { errors: [{ path: 'text', message: 'm' }], data: { invariant: 'M2' } }),
      'trace',
    )
    expect(Problem.parse(problem)).toEqual(problem)
    expect(problem).toMatchObject({
      status: 409,
      code: 'edit_forks',
      detail: 'No.',
      errors: [{ path: 'text', message: 'm' }],
      data: { invariant: 'M2' },
    })
  })

  it('says nothing of an unknown error', () => {
    const problem = problemOf(asLingtaiError(new Error('secret lt_abc at /home/x')), 'trace')
    expect(problem).toMatchObject({ status: 500, code: 'internal_error', trace_id: 'trace' })
    expect(JSON.stringify(problem)).not.toMatch(/lt_abc|home/)
  })

  it.each([
    [{ code: 'P2002' }, 'conflict'],
    [{ code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: '23505' } } } }, 'conflict'],
    [{ code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: 'LT003' } } } }, 'invariant_refused'],
    [{ code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: 'LT004' } } } }, 'candidate_open'],
    [{ code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: 'LT010' } } } }, 'wrong_state'],
    [{ code: '40P01' }, 'unavailable'],
    [{ code: 'ECONNREFUSED' }, 'unavailable'],
    [{ code: 'P2024' }, 'unavailable'],
    [{ code: '23503' }, 'internal_error'],
    [{ status: 404 }, 'not_found'],
    [{ status: 400 }, 'validation_failed'],
    [{ status: 500 }, 'internal_error'],
    [new URIError('bad'), 'validation_failed'],
    [null, 'internal_error'],
    ['text', 'internal_error'],
  ])('takes %j as %s', (error, code) => {
    expect(codeOf(error)).toBe(code)
  })
})
