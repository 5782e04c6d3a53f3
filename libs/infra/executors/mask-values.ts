/** Values shorter than this are no secrets, and masking them would riddle every text. */
const SHORTEST = 8

/** A text without these values, and without what follows `Bearer ` in them. */
export function maskValues(text: string, values: readonly string[]): string {
  const secrets = values.flatMap((value) => [value, ...value.split(/\s+/).slice(1)]).filter((value) => value.length >= SHORTEST)
  return [...new Set(secrets)]
    .sort((left, right) => right.length - left.length)
    .reduce((masked, secret) => masked.replaceAll(secret, '[masked]'), text)
}
