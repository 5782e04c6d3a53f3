import { z } from 'zod'
import { Digest, Id, Instant } from './ids.ts'

/** What an anchor says, in canonical JSON: these heads stood there at that time, after that anchor (decision 18). */
export const AnchorBody = z.strictObject({
  version: z.literal(1),
  instance_id: Id,
  cluster_epoch: z.int().min(1),
  /** 1, 2, 3 … without a gap. */
  seq: z.int().min(1),
  at: Instant,
  heads: z.int().min(1),
  /** Merkle root over the heads, ordered by the bytes of their streams' names. */
  heads_root: Digest,
  /** Hash of the anchor before; zeros for the first. */
  previous_hash: Digest,
})
export type AnchorBody = z.infer<typeof AnchorBody>

/** An anchor as it stands in the file outside the database and in evidence. Base64 for bytes but hashes, which are hex. */
export const SignedAnchor = z.strictObject({
  seq: z.int().min(1),
  /** The canonical bytes of the body, which the signature covers. */
  canonical: z.string(),
  /** SHA-256 of them. */
  hash: Digest,
  /** Ed25519: 32 bytes, and 64 of the signature. */
  public_key: z.base64(),
  signature: z.base64(),
})
export type SignedAnchor = z.infer<typeof SignedAnchor>
