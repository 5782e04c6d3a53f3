import { saltedDigest } from '#kernel/record/chain'
import { canonicalJson, NotCanonicalError } from '#kernel/record/canonical-json'
import type { Ids } from '#kernel/ports/clock'
import type { Observation } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { SeenObservation } from '#kernel/reducer/commands'
import { maskedArguments } from './masked-arguments.ts'
import type { PendingContent } from './ports.ts'

/**
 * One spelling for arguments that say the same, with their secrets masked; what no tool can be given stays a text, masked as one, storable, and
 * is refused later.
 */
export function keptArguments(text: string, scrub: (text: string) => string): string {
  const kept = readable(() => {
    const parsed = objectIn(text.trim() === '' ? '{}' : text)
    return parsed && canonicalJson(maskedArguments(parsed, scrub))
  })
  return kept ?? scrub(text.replaceAll('\0', '\uFFFD').toWellFormed())
}

/** Null for what no tool can be given: no JSON object, or one that has no canonical form. */
export function parsedArguments(text: string | null): JsonObject | null {
  return text === null ? null : readable(() => objectIn(text))
}

/** Throws SyntaxError, NotCanonicalError, RangeError. */
function objectIn(text: string): JsonObject | null {
  const parsed: unknown = JSON.parse(text)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return null
  canonicalJson(parsed)
  return parsed as JsonObject
}

function readable<Read>(read: () => Read | null): Read | null {
  try {
    return read()
  } catch (error) {
    // Not JSON, half a character, a number that nobody can hold, or deeper than anybody can read: the model made a mistake, and hears of it.
    if (error instanceof SyntaxError || error instanceof NotCanonicalError || error instanceof RangeError) return null
    throw error
  }
}

/** An observation as content: attested, scrubbed, with how far it is to be believed. */
export function observationContent(
  observation: Observation,
  place: { ownerId: string; derivedFrom: readonly string[]; ids: Ids; scrub(text: string): string },
): { seen: SeenObservation; content: PendingContent } {
  const { ownerId, derivedFrom, ids, scrub } = place
  const { source, at, licence, mediaType, truncated, trust } = observation
  const text = JSON.stringify({
    source,
    at,
    ...(licence === null ? {} : { licence }),
    media_type: mediaType,
    ...(truncated ? { truncated } : {}),
    trust,
    text: scrub(observation.text),
  })
  const salt = ids.bytes(32)
  const content: PendingContent = {
    id: ids.next(),
    owner_id: ownerId,
    media_type: 'application/json',
    content: text,
    salt,
    derived_from: derivedFrom,
  }
  return { seen: { content_id: content.id, digest: Buffer.from(saltedDigest(salt, text)).toString('hex'), trust }, content }
}
