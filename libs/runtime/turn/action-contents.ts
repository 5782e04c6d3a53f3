import { saltedDigest } from '#kernel/record/chain'
import { canonicalJson, NotCanonicalError } from '#kernel/record/canonical-json'
import type { Ids } from '#kernel/ports/clock'
import type { Observation } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { SeenObservation } from '#kernel/reducer/commands'
import type { PendingContent } from './ports.ts'

/** One spelling for arguments that say the same; what no tool can be given stays as it came, storable, and is refused later. */
export function normalizedArguments(text: string): string {
  return readArguments(text.trim() === '' ? '{}' : text)?.canonical ?? text.replaceAll('\0', '\uFFFD').toWellFormed()
}

/** Null for what no tool can be given: no JSON object, or one that has no canonical form. */
export function parsedArguments(text: string | null): JsonObject | null {
  return text === null ? null : (readArguments(text)?.parsed ?? null)
}

function readArguments(text: string): { parsed: JsonObject; canonical: string } | null {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return null
    return { parsed: parsed as JsonObject, canonical: canonicalJson(parsed) }
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
