import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isSignedByItsKey } from '#kernel/record/anchor'
import type { AnchorSigner } from '#kernel/record/anchor'
import { sha256Hex } from '#kernel/record/chain'
import { AnchorKeyError, openAnchorSigner } from './instance-key.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'lingtai-key-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const secret = (id: string, byte: number) => ({ id, key: Buffer.alloc(32, byte) })
const open = (secretKeys: Parameters<typeof openAnchorSigner>[0]['secretKeys'] = [], past: string[] = []): AnchorSigner =>
  openAnchorSigner({
    home,
    secretKeys,
    pastKeys: async function* () {
      yield* past
    },
  })
const signed = (signer: AnchorSigner, canonical = '{}') => ({
  seq: 1,
  canonical,
  hash: sha256Hex(canonical),
  public_key: signer.publicKey,
  signature: signer.sign(canonical),
})

describe('the key for anchors', () => {
  it('is made once per home, readable by its owner alone, and signs', () => {
    const first = open()
    expect(statSync(join(home, 'anchor.key')).mode & 0o777).toBe(0o600)
    expect(open().publicKey).toBe(first.publicKey)
    expect(isSignedByItsKey(signed(first))).toBe(true)
    expect(isSignedByItsKey({ ...signed(first), canonical: '[]' })).toBe(false)
    expect(isSignedByItsKey({ ...signed(first), public_key: open([secret('a', 1)]).publicKey })).toBe(false)
    expect(isSignedByItsKey({ ...signed(first), public_key: 'AAAA' })).toBe(false)
  })

  it('is the same for all who have the same secret keys, and writes no file then', async () => {
    const one = open([secret('a', 1)])
    rmSync(home, { recursive: true })
    const other = open([secret('a', 1), secret('b', 2)])
    expect(other.publicKey).toBe(one.publicKey)
    expect(() => statSync(home)).toThrow(/ENOENT/)
    const rotated = open([secret('b', 2), secret('a', 1)])
    expect(rotated.publicKey).not.toBe(one.publicKey)
    expect(await rotated.knows(one.publicKey)).toBe(true)
    expect(await one.knows(rotated.publicKey)).toBe(false)
  })

  it('counts signatures of the home’s file beside given keys, and of keys that already stand in the file of anchors', async () => {
    const file = open()
    const given = open([secret('a', 1)], ['past'])
    expect(await Promise.all([file.publicKey, 'past', 'other'].map((key) => given.knows(key)))).toEqual([true, true, false])
  })

  it('refuses a file that holds no such key', () => {
    writeFileSync(join(home, 'anchor.key'), 'nothing')
    expect(() => open()).toThrow(AnchorKeyError)
  })
})
