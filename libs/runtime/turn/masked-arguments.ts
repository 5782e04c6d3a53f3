import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'

type Scrub = (text: string) => string

/** A member's name as it was given and as it is kept. */
type Name = { given: string; kept: string }

/**
 * Arguments with every secret in a name, a text or a number masked (decision 37, ADR 0015). Each is judged by itself, with the name that it
 * stands under as prose would say it, and never as a piece of JSON: what comes out is JSON too, and all but the secrets is as it was given.
 * Throws RangeError for what is nested too deep to be read.
 */
export function maskedArguments(given: JsonObject, scrub: Scrub): JsonObject {
  return Object.fromEntries(
    Object.entries(given).map(([text, value]) => {
      const name = { given: text, kept: scrub(text) }
      return [name.kept, maskedValue(name, value, scrub)]
    }),
  )
}

function maskedValue(name: Name | null, value: JsonValue, scrub: Scrub): JsonValue {
  if (typeof value === 'string') return maskedText(name, value, scrub)
  if (typeof value === 'number') {
    const text = String(value)
    const masked = maskedText(name, text, scrub)
    return masked === text ? value : masked
  }
  if (Array.isArray(value)) return value.map((one) => maskedValue(null, one, scrub))
  return typeof value === 'object' && value !== null ? maskedArguments(value, scrub) : value
}

/** `password: …` says of a text what the text itself does not. */
function maskedText(name: Name | null, text: string, scrub: Scrub): string {
  if (name === null) return scrub(text)
  const said = scrub(`${name.given}: ${text}`)
  const before = `${name.kept}: `
  // A secret that begins in the name and ends in the text leaves nothing of either.
  return said.startsWith(before) ? said.slice(before.length) : said
}
