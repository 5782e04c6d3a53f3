/** The options do not say what the verb needs. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
