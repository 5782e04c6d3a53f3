import { saltedDigest } from '#kernel/record/chain'
import { canonicalJson } from '#kernel/record/canonical-json'
import type { Ids } from '#kernel/ports/clock'
import type { Observation } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { SeenObservation } from '#kernel/reducer/commands'
import type { PendingContent } from './ports.ts'

/** One spelling for arguments that say the same; what is no JSON object stays as it came and is refused later. */
export function normalizedArguments(text: string): string {
  const parsed = parsedArguments(text.trim() === '' ? '{}' : text)
  return parsed === null ? text : canonicalJson(parsed)
}

export function parsedArguments(text: string | null): JsonObject | null {
  if (text === null) return null
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as JsonObject) : null
  } catch {
    // Not JSON: the model made a mistake, and hears of it.
    return null
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
