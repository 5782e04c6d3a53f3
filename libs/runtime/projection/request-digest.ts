import type { Digest, EventPayload, NodePart, NodeRole } from '#contracts'
import { sha256Hex } from '#kernel/record/chain'

/** What of a node a path digest covers. `digest` is the salted digest of the node's content, and covers the joined texts of its parts. */
export type DigestedNode = { role: NodeRole; digest: Digest; parts: readonly NodePart[] }

/**
 * Digest of a path piece: SHA-256 over one line per node that projects as something, oldest first:
 * `<role>:<content digest>:<kind>=<UTF-16 length>,…`. The role and the cut into parts are covered, since the content's own digest covers
 * the text alone; the text enters through its salted digest only, so that an erased one cannot be guessed (decision 10).
 */
export function pathDigest(nodes: readonly DigestedNode[]): Digest {
  const lines = nodes.map(
    ({ role, digest, parts }) => `${role}:${digest}:${parts.map(({ kind, text }) => `${kind}=${text.length}`).join(',')}\n`,
  )
  return sha256Hex(lines.join(''))
}

/**
 * Digest of a whole request, as llm.requested records it: SHA-256 over one line per part, in sent order: `layout:<version>`, `frame:<digest>`,
 * then `content:<role>:<digest>`, `message:<role>:<digest>` or `path:<nodes>:<digest>` per piece, then `patch:<digest>` per rewrite, each
 * closed by a line feed. Erasing one part blanks that part only
 * (spec/2 "Rewrites and the rebuild assertion").
 */
export function requestDigest(
  projected: Pick<EventPayload<'context.projected'>, 'layout_version' | 'frame_digest' | 'pieces'>,
  patches: readonly Digest[] = [],
): Digest {
  const lines = [`layout:${projected.layout_version}`, `frame:${projected.frame_digest}`]
  for (const piece of projected.pieces) {
    lines.push(piece.kind === 'path' ? `path:${piece.nodes}:${piece.digest}` : `${piece.kind}:${piece.role}:${piece.digest}`)
  }
  for (const patch of patches) lines.push(`patch:${patch}`)
  return sha256Hex(lines.map((line) => `${line}\n`).join(''))
}
