import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeSocketFolder } from './socket-folder.ts'

let home: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'lingtai-test-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

it('lies in the home, closed to others even if it was open before', () => {
  mkdirSync(join(home, 'run'), { mode: 0o755 })
  const sockets = makeSocketFolder(home)
  expect(sockets.socketPath).toBe(join(home, 'run', '.s.PGSQL.5432'))
  expect(statSync(sockets.folder).mode & 0o777).toBe(0o700)
})

it('lies in a short folder of its own where the home is too deep, and goes with it', () => {
  const deep = join(home, 'a-rather-long-name-for-a-folder'.repeat(3))
  const sockets = makeSocketFolder(deep)
  expect(Buffer.byteLength(sockets.socketPath)).toBeLessThanOrEqual(103)
  expect(statSync(sockets.folder).mode & 0o777).toBe(0o700)
  sockets.remove()
  expect(existsSync(sockets.folder)).toBe(false)
})
