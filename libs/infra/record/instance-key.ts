import { createPrivateKey, createPublicKey, generateKeyPairSync, hkdfSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnchorSigner } from '#kernel/record/anchor'
import type { SecretKey } from '../config/secret-keys.ts'

/** What stands before the 32 bytes of an Ed25519 private key in PKCS #8. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const KEY_PURPOSE = 'lingtai anchor key 1'

/** `LINGTAI_HOME/anchor.key` is there and no key. */
export class AnchorKeyError extends Error {
  constructor(path: string, cause: unknown) {
    super(`${path} holds no Ed25519 private key in PEM; put back the one that was there, or move the file away for a fresh one`, { cause })
    this.name = 'AnchorKeyError'
  }
}

/**
 * The instance's key for anchors: derived from the first of LINGTAI_SECRET_KEYS, so that all processes of an instance sign as one; without
 * them `LINGTAI_HOME/anchor.key` (0600), made when there is none. Signatures count by every key of the list, the file's, and those that
 * `pastKeys` names: the keys under which the file outside the database already holds anchors. Throws AnchorKeyError.
 */
export function openAnchorSigner(input: {
  home: string
  secretKeys: readonly SecretKey[]
  pastKeys: () => AsyncIterable<string>
}): AnchorSigner {
  const derived = input.secretKeys.map(derivedKey)
  const path = join(input.home, 'anchor.key')
  const keys = [...derived, ...(derived.length === 0 || existsSync(path) ? [keyFile(input.home, path)] : [])]
  const [own] = keys
  if (!own) throw new Error('there is always a key')
  const known = new Set(keys.map(publicKeyOf))
  const isKnown = async (publicKey: string): Promise<boolean> => {
    if (known.has(publicKey)) return true
    for await (const key of input.pastKeys()) known.add(key)
    return known.has(publicKey)
  }
  return {
    publicKey: publicKeyOf(own),
    sign: (text) => sign(null, Buffer.from(text, 'utf8'), own).toString('base64'),
    knows: isKnown,
  }
}

function derivedKey({ key }: SecretKey): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', key, new Uint8Array(), KEY_PURPOSE, 32))
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
}

function keyFile(home: string, path: string): KeyObject {
  if (!existsSync(path)) {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const fresh = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })
    try {
      writeFileSync(path, fresh, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      // Another process of this home made one at the same time: that one it is.
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    }
  }
  try {
    const key = createPrivateKey(readFileSync(path))
    if (key.asymmetricKeyType !== 'ed25519') throw new TypeError(`a key of type ${key.asymmetricKeyType}`)
    return key
  } catch (error) {
    throw new AnchorKeyError(path, error)
  }
}

function publicKeyOf(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return Buffer.from(x ?? '', 'base64url').toString('base64')
}
