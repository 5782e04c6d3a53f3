import type { ContentLayout } from '#kernel/ports/content-store'

export type FoldSegment = { kind: 'text' | 'reasoning'; body: string; salt: Uint8Array }
/** An interjection that took effect after so many segments. */
export type FoldSteer = { content_id: string; digest: string; text: string; after_segments: number }

export type FoldedAnswer = { body: string; layout: ContentLayout; derivedFrom: string[] }

/**
 * One content row from the segments of a sprout and the interjections between them: the body, its ordered parts, and where each segment
 * lies with its salt, so that a delta's digest can still be checked (decisions 11, 12). Pure.
 */
export function foldAnswer(segments: readonly FoldSegment[], steers: readonly FoldSteer[]): FoldedAnswer {
  let body = ''
  const parts: { kind: 'text' | 'reasoning' | 'steer'; from: number; to: number }[] = []
  const ranges: { part: number; from: number; to: number; salt: string }[] = []
  const waiting = [...steers].sort((left, right) => left.after_segments - right.after_segments)

  const append = (kind: 'text' | 'reasoning' | 'steer', text: string): void => {
    const last = parts.at(-1)
    const from = body.length
    body += text
    if (last && last.kind === kind && kind !== 'steer') last.to = body.length
    else parts.push({ kind, from, to: body.length })
  }

  const interject = (spoken: number): void => {
    for (let next = waiting[0]; next && next.after_segments <= spoken; next = waiting[0]) {
      append('steer', next.text)
      waiting.shift()
    }
  }

  segments.forEach((segment, index) => {
    interject(index)
    const from = body.length
    append(segment.kind, segment.body)
    ranges.push({ part: parts.length - 1, from, to: body.length, salt: Buffer.from(segment.salt).toString('base64') })
  })
  interject(segments.length)
  return { body, layout: { parts, segments: ranges }, derivedFrom: steers.map((steer) => steer.content_id) }
}
