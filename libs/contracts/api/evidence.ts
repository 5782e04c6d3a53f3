import { z } from 'zod'
import { SignedAnchor } from '../anchors.ts'
import { NodeAuthor, NodeKind, NodeRole, RunKind, RunState, Trust } from '../enums.ts'
import { Digest, Id } from '../ids.ts'

/** A node of the tree as it stands in evidence. */
const EvidenceNode = z.object({
  id: Id,
  parent_id: Id.nullable(),
  kind: NodeKind,
  role: NodeRole,
  author: NodeAuthor,
  trust: Trust,
  sealed: z.boolean(),
  partial: z.boolean(),
  deleted: z.boolean(),
  content_id: Id.nullable(),
  run_id: Id.nullable(),
})
export type EvidenceNode = z.infer<typeof EvidenceNode>

/** An event by its place in the run's stream; type and payload as its canonical bytes have them. */
const EvidenceEntry = z.object({ seq: z.int(), type: z.string(), payload: z.record(z.string(), z.unknown()) })
export type EvidenceEntry = z.infer<typeof EvidenceEntry>

/**
 * A text or file that the run's events refer to. `digest` is SHA-256 of salt and bytes; null while it is being written. Erased: `body`,
 * `bytes` and `salt` are null, and the digest is all that is left. `segments` are the deltas' shares of `body` in UTF-16 units.
 */
const EvidenceContent = z.object({
  id: Id,
  media_type: z.string(),
  erased: z.boolean(),
  digest: Digest.nullable(),
  salt: z.base64().nullable(),
  body: z.string().nullable(),
  bytes: z.base64().nullable(),
  segments: z.array(z.object({ from: z.int(), to: z.int(), salt: z.base64() })),
})
export type EvidenceContent = z.infer<typeof EvidenceContent>

/**
 * Everything about one run that somebody else needs to check it by, in one JSON file: `scripts/verify-evidence.mjs` and Node are enough.
 * The signature is by the instance's key, over the canonical JSON (RFC 8785) of `statement`.
 */
export const Evidence = z
  .object({
    lingtai_evidence: z.literal(1),
    statement: z.object({
      made_at: z.string(),
      instance_id: Id,
      /** The attempt, and what it was bound to. */
      run: z.object({
        id: Id,
        owner_id: Id,
        kind: RunKind,
        state: RunState,
        reason: z.string().nullable(),
        character_id: Id,
        tree_id: Id.nullable(),
        persona_version_id: Id.nullable(),
        trace_id: Id,
        seed: z.int(),
        requested_at: z.string(),
        started_at: z.string().nullable(),
        ended_at: z.string().nullable(),
      }),
      question: EvidenceNode.nullable(),
      candidate: EvidenceNode.nullable(),
      /** Node ids from the root to the question. */
      lineage: z.array(Id),
      /** Ranges of canon that hold the candidate. */
      canonizations: z.array(
        z.object({ id: Id, from_node_id: Id, to_node_id: Id, created_at: z.string(), withdrawn_at: z.string().nullable() }),
      ),
      contents: z.array(EvidenceContent),
      /** The run's whole stream: canonical bytes and the hash over the one before and them. */
      events: z.array(z.object({ seq: z.int(), canonical: z.string(), hash: Digest })),
      /** What was decided, by the gate, admission and listeners. */
      policies: z.array(EvidenceEntry),
      /** What went out, what came of it, and who approved. */
      effects: z.array(EvidenceEntry),
      usage: z.object({
        requests: z.int(),
        prompt_tokens: z.int(),
        completion_tokens: z.int(),
        settled_tokens: z.int(),
        estimated: z.boolean(),
      }),
      /** The newest anchor over this stream: which event it signs for, and the way from there to the anchor's root. */
      proof: z
        .object({
          anchor: SignedAnchor,
          head: z.object({ stream: z.string(), seq: z.int(), hash: Digest }),
          path: z.array(z.object({ side: z.enum(['left', 'right']), hash: Digest })),
        })
        .nullable(),
    }),
    public_key: z.base64(),
    signature: z.base64(),
  })
  .meta({ id: 'Evidence' })
export type Evidence = z.infer<typeof Evidence>
