import { createPublicKey, verify } from 'node:crypto'
import { AnchorBody } from '#contracts'
import type { SignedAnchor } from '#contracts'
import { canonicalJson } from './canonical-json.ts'
import { GENESIS_HASH, sha256Hex } from './chain.ts'

/** A stream's head as an anchor covers it; the hash as hex. */
export type AnchoredHead = { stream: string; seq: number; hash: string }

/** What a head contributes to the root: its canonical JSON. */
export function headLeaf({ stream, seq, hash }: AnchoredHead): string {
  return canonicalJson([stream, seq, hash])
}

/** `previous_hash` of the first anchor. */
export const NO_ANCHOR_HASH: string = Buffer.from(GENESIS_HASH).toString('hex')

/** Signs with the instance's key, and knows whose signatures count (decision 18). */
export interface AnchorSigner {
  /** Raw Ed25519 public key in base64. */
  readonly publicKey: string
  sign(text: string): string
  /** Whether a public key is one of this instance's, present or past. */
  knows(publicKey: string): Promise<boolean>
}

export function signAnchor(body: AnchorBody, signer: AnchorSigner): SignedAnchor {
  const canonical = canonicalJson(body)
  return { seq: body.seq, canonical, hash: sha256Hex(canonical), public_key: signer.publicKey, signature: signer.sign(canonical) }
}

/** The body of an anchor whose bytes are canonical, whose hash fits and whose number is its own; null otherwise. Says nothing of its signature. */
export function anchorBody(anchor: SignedAnchor): AnchorBody | null {
  const parsed = AnchorBody.safeParse(parseJson(anchor.canonical))
  if (!parsed.success || canonicalJson(parsed.data) !== anchor.canonical) return null
  return parsed.data.seq === anchor.seq && sha256Hex(anchor.canonical) === anchor.hash ? parsed.data : null
}

/** Whether the signature is by the key that the anchor names. */
export function isSignedByItsKey(anchor: SignedAnchor): boolean {
  const publicKey = Buffer.from(anchor.public_key, 'base64')
  if (publicKey.byteLength !== 32) return false
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey.toString('base64url') }, format: 'jwk' })
  return verify(null, Buffer.from(anchor.canonical, 'utf8'), key, Buffer.from(anchor.signature, 'base64'))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // not JSON: the schema refuses it
  }
}
