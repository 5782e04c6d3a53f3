import { describe, expect, it } from 'vitest'
import { raiseSql, refusedStatement, SessionGuard } from './session-guard.ts'
import { queryMessage } from './wire-protocol.ts'

describe('refusedStatement', () => {
  it.each([
    'SET x = 1',
    'set session x = 1',
    'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
    'SELECT 1; RESET x',
    'DISCARD ALL',
    'PREPARE p AS SELECT 1',
    'EXECUTE p',
    'DEALLOCATE ALL',
    'LISTEN x',
    'UNLISTEN *',
    "LOAD 'x'",
    'COPY t FROM STDIN (FORMAT csv)',
    'DECLARE c CURSOR WITH HOLD FOR SELECT 1',
    'CREATE TEMPORARY TABLE t (a int)',
    'CREATE OR REPLACE TEMP VIEW v AS SELECT 1',
    'CREATE TEMP TABLE t (a int) ON COMMIT DELETE ROWS',
    'SELECT 1 AS a INTO TEMP t',
    'SELECT pg_advisory_lock(1)',
    'SELECT pg_try_advisory_lock_shared(1)',
    'SELECT pg_catalog.pg_advisory_unlock_all()',
    "SELECT set_config('a', 'b', false)",
    "SELECT set_config('a', f('b', true), $1)",
  ])('refuses %s', (sql) => {
    expect(refusedStatement(sql)).toMatchObject({ code: '0A000' })
  })

  it.each([
    'SET LOCAL x = 1',
    'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    'SET CONSTRAINTS ALL DEFERRED',
    "PREPARE TRANSACTION 'x'",
    'COPY t TO STDOUT',
    'DECLARE c CURSOR FOR SELECT 1',
    'CREATE TABLE temp (a int)',
    'INSERT INTO temp VALUES (1)',
    'CREATE TEMP TABLE t (a int) ON COMMIT DROP',
    'CREATE FUNCTION f() RETURNS int LANGUAGE sql SET search_path = public AS $$ SELECT 1 $$',
    'ALTER TABLE t ALTER COLUMN a SET NOT NULL',
    'SELECT pg_advisory_xact_lock(1)',
    'SELECT pg_try_advisory_xact_lock_shared(1)',
    "SELECT set_config('a', f('b'), true)",
    "UPDATE t SET a = 'RESET x'",
  ])('lets through %s', (sql) => {
    expect(refusedStatement(sql)).toBeUndefined()
  })
})

describe('SessionGuard', () => {
  it('gives the same verdict for a text it has seen, and for one too long to remember', () => {
    const guard = new SessionGuard()
    const long = `SET x = '${'y'.repeat(10_000)}'`
    for (const sql of ['SET x = 1', 'SET x = 1', 'UPDATE t SET a = 1', 'UPDATE t SET a = 1', long, long]) {
      expect(guard.check(queryMessage(sql))?.code).toBe(sql.startsWith('SET') ? '0A000' : undefined)
    }
  })
})

describe('raiseSql', () => {
  it('quotes what the refused statement was called', () => {
    expect(raiseSql({ code: '0A000', message: "it's", hint: 'h' })).toBe(
      "DO LANGUAGE plpgsql 'BEGIN RAISE EXCEPTION USING ERRCODE = ''0A000'', MESSAGE = ''it''''s'', HINT = ''h''; END'",
    )
  })
})
