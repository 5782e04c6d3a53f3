import type { Trust } from '#contracts'
import type { EffectOutcome, Observation } from '#kernel/ports/effect-target'

/** Most bytes of an observation's text, in UTF-8; longer is cut and says so. */
export const OBSERVATION_MAX_BYTES = 1024 * 1024

/** An attested answer. The text is made storable (no NUL, no lone surrogate) and cut to the limit; nothing else of it is touched. */
export function observe(parts: {
  text: string
  source: string
  at: Date
  trust: Trust
  mediaType?: Observation['mediaType']
  licence?: string | null
  truncated?: boolean
}): Observation {
  const { text, cut } = cutBytes(storable(parts.text), OBSERVATION_MAX_BYTES)
  return {
    // What was cut in the middle is no JSON any more.
    mediaType: cut ? 'text/plain' : (parts.mediaType ?? 'text/plain'),
    text,
    source: parts.source,
    at: parts.at.toISOString(),
    licence: parts.licence ?? null,
    trust: parts.trust,
    truncated: cut || (parts.truncated ?? false),
  }
}

/** An authoritative no with nothing to show. */
export function failed(code: string): EffectOutcome {
  return { type: 'failed', code, observation: null }
}

/** Text that a database column and a JSON reader take. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\u{FFFD}').toWellFormed()
}

/** The longest beginning of a text that fits into so many bytes of UTF-8. */
export function cutBytes(text: string, limit: number): { text: string; cut: boolean } {
  // No UTF-16 unit takes more than three bytes.
  if (text.length * 3 <= limit) return { text, cut: false }
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.byteLength <= limit) return { text, cut: false }
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return { text: bytes.toString('utf8', 0, end), cut: true }
}
