import { createHash } from 'node:crypto'
import type { Ids } from '#kernel/ports/clock'

const SECRET_BYTES = 32
const TOKEN_PREFIX = 'lt_'

/** A secret to hand out once: 256 random bits as base64url, and its SHA-256 to keep. */
export function newSecret(ids: Ids): { secret: string; hash: Uint8Array } {
  const secret = Buffer.from(ids.bytes(SECRET_BYTES)).toString('base64url')
  return { secret, hash: hashSecret(secret) }
}

/** As `newSecret`, with the prefix by which API tokens are told apart in files and logs. */
export function newTokenSecret(ids: Ids): { secret: string; hash: Uint8Array } {
  const secret = TOKEN_PREFIX + newSecret(ids).secret
  return { secret, hash: hashSecret(secret) }
}

/** SHA-256 is enough for a secret of 256 random bits; a slow hash is for passwords. */
export function hashSecret(secret: string): Uint8Array {
  return createHash('sha256').update(secret, 'utf8').digest()
}
