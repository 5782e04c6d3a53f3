import type { Trust } from '#contracts'
import type { ContentLayout } from '#kernel/ports/content-store'

export type FoldSegment = { kind: 'text' | 'reasoning'; body: string; salt: Uint8Array }

/**
 * What stands between the segments of an answer, after so many of them: an interjection that took effect, an action that was proposed, what
 * came of one. `text` is what stands in the answer's body; of an action that is ids and a verdict, never a second copy of its content.
 */
export type FoldInsert = {
  kind: 'steer' | 'tool_call' | 'tool_result_ref'
  /** The interjection, the arguments, the observation; null where an action brought none. */
  content_id: string | null
  digest: string
  text: string
  after_segments: number
  trust: Trust
  /** Of an action: what it is, and the text of its arguments or observation. */
  action: { action_id: string; tool: string; status: string | null; reason: string | null; body: string | null } | null
}

export type FoldedAnswer = { body: string; layout: ContentLayout; derivedFrom: string[]; inserts: readonly FoldInsert[] }

/**
 * One content row from the segments of a sprout and what stands between them: the body, its ordered parts, and where each segment lies with
 * its salt, so that a delta's digest can still be checked (decisions 11, 12). `inserts` in the order of their parts. Pure.
 */
export function foldAnswer(segments: readonly FoldSegment[], inserts: readonly FoldInsert[]): FoldedAnswer {
  let body = ''
  const parts: { kind: 'text' | 'reasoning' | FoldInsert['kind']; from: number; to: number }[] = []
  const ranges: { part: number; from: number; to: number; salt: string }[] = []
  // Sorting is stable: what happened at one place stays in its order.
  const ordered = [...inserts].sort((left, right) => left.after_segments - right.after_segments)
  const waiting = [...ordered]

  const append = (kind: 'text' | 'reasoning' | FoldInsert['kind'], text: string): void => {
    const last = parts.at(-1)
    const from = body.length
    body += text
    if (last && last.kind === kind && (kind === 'text' || kind === 'reasoning')) last.to = body.length
    else parts.push({ kind, from, to: body.length })
  }

  const insert = (spoken: number): void => {
    for (let next = waiting[0]; next && next.after_segments <= spoken; next = waiting[0]) {
      append(next.kind, next.text)
      waiting.shift()
    }
  }

  segments.forEach((segment, index) => {
    insert(index)
    const from = body.length
    append(segment.kind, segment.body)
    ranges.push({ part: parts.length - 1, from, to: body.length, salt: Buffer.from(segment.salt).toString('base64') })
  })
  insert(segments.length)
  const copied = ordered.flatMap(({ kind, content_id: id }) => (kind === 'steer' && id !== null ? [id] : []))
  return { body, layout: { parts, segments: ranges }, derivedFrom: copied, inserts: ordered }
}
