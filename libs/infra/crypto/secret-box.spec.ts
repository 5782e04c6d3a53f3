import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LingtaiError } from '#contracts'
import { GivenKeys, HomeKeys, KeyFileError } from './key-ring.ts'
import { AesSecretBox } from './secret-box.ts'

const ids = { bytes: (length: number): Uint8Array => randomBytes(length) }
const key = (id: string) => ({ id, key: randomBytes(32) })
const boxOf = (...keys: ReturnType<typeof key>[]) => new AesSecretBox({ keys: new GivenKeys(keys), ids })

describe('AesSecretBox', () => {
  it('opens what it sealed, for the same row alone', async () => {
    const box = boxOf(key('a'))
    const sealed = await box.seal('Bearer 密钥', 'owner:row')
    expect(Buffer.from(sealed.sealed).toString('latin1')).not.toContain('Bearer')
    expect(await box.open(sealed, 'owner:row')).toBe('Bearer 密钥')
    expect(await box.open(sealed, 'other:row')).toBeNull()
    expect((await box.seal('Bearer 密钥', 'owner:row')).sealed).not.toEqual(sealed.sealed)
  })

  it('opens nothing that was touched, anywhere', async () => {
    const box = boxOf(key('a'))
    const { key_id, sealed } = await box.seal('x', 'c')
    for (let at = 0; at < sealed.byteLength; at++) {
      const touched = Buffer.from(sealed)
      touched.writeUInt8(touched.readUInt8(at) ^ 1, at)
      expect(await box.open({ key_id, sealed: touched }, 'c'), `byte ${at}`).toBeNull()
    }
    expect(await box.open({ key_id, sealed: sealed.subarray(0, 20) }, 'c')).toBeNull()
  })

  it('seals with the first key and opens with any that is still there', async () => {
    const [old, fresh] = [key('old'), key('new')]
    const sealed = await boxOf(old).seal('x', 'c')
    const both = boxOf(fresh, old)
    expect(await both.open(sealed, 'c')).toBe('x')
    expect((await both.seal('x', 'c')).key_id).toBe('new')
    expect(await boxOf(fresh).open(sealed, 'c')).toBeNull()
    expect(await boxOf({ ...key('old') }).open(sealed, 'c')).toBeNull()
  })

  it('keeps nothing without a key', async () => {
    await expect(boxOf().seal('x', 'c')).rejects.toThrow(LingtaiError)
  })
})

describe('HomeKeys', () => {
  let home: string
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'lingtai-keys-'))
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))
  const path = () => join(home, 'secret.key')
  const boxIn = (...given: ReturnType<typeof key>[]) => new AesSecretBox({ keys: new HomeKeys({ given, home, ids }), ids })

  it('makes its key once, for its user alone, and finds it again', async () => {
    const sealed = await boxIn().seal('x', 'c')
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    const text = readFileSync(path(), 'utf8')
    expect(await boxIn().open(sealed, 'c')).toBe('x')
    await boxIn().seal('y', 'c')
    expect(readFileSync(path(), 'utf8')).toBe(text)
  })

  it('says "lost" where the file is gone, and makes nothing by looking', async () => {
    const sealed = await boxIn().seal('x', 'c')
    rmSync(path())
    expect(await boxIn().open(sealed, 'c')).toBeNull()
    expect(() => statSync(path())).toThrow()
  })

  it('takes the operator’s key first, and makes no own one then', async () => {
    expect((await boxIn(key('given')).seal('x', 'c')).key_id).toBe('given')
    expect(() => statSync(path())).toThrow()
  })

  it('overwrites no file that it cannot read', async () => {
    writeFileSync(path(), 'damaged')
    chmodSync(path(), 0o600)
    await expect(boxIn().seal('x', 'c')).rejects.toThrow(KeyFileError)
    expect(readFileSync(path(), 'utf8')).toBe('damaged')
  })
})
