import type { ErrorCode, Invariant } from '#contracts'

/** What the rules need to know of a node. */
export type NodeFacts = { kind: 'root' | 'question' | 'candidate'; sealed: boolean; partial: boolean; deleted: boolean }

/** A refusal: which invariant, and the stable code of the answer. Null = nothing stands against it. */
export type Refusal = { invariant: Invariant; code: ErrorCode } | null

/** Nothing hangs below a sprout or a tombstone; the tree goes on from any other node (decision 23). */
export function mayHangBelow(node: NodeFacts): Refusal {
  if (!node.sealed) return { invariant: 'M1', code: 'candidate_open' }
  if (node.deleted) return { invariant: 'M6', code: 'node_deleted' }
  return null
}

/** M2: what was sent is never changed; editing forks. */
export function mayChangeText(): Refusal {
  return { invariant: 'M2', code: 'edit_forks' }
}

/** M7: only a complete candidate becomes canonical. */
export function mayCanonize(node: NodeFacts): Refusal {
  if (node.deleted) return { invariant: 'M6', code: 'node_deleted' }
  if (node.kind !== 'candidate') return { invariant: 'M3', code: 'invariant_refused' }
  if (!node.sealed || node.partial) return { invariant: 'M7', code: 'partial_not_canonizable' }
  return null
}

/** M3: a source of long-term memory lies in the canonical scope. */
export function mayFeedMemory(source: { canonical: boolean; partial: boolean; deleted: boolean }): Refusal {
  if (source.deleted) return { invariant: 'M6', code: 'node_deleted' }
  if (source.partial) return { invariant: 'M7', code: 'partial_not_canonizable' }
  if (!source.canonical) return { invariant: 'M3', code: 'invariant_refused' }
  return null
}
