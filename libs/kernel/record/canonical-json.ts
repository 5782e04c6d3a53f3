/** Thrown for a value that has no canonical form: undefined inside arrays, non-finite numbers, lone surrogates, unsafe integers. */
export class NotCanonicalError extends Error {
  constructor(reason: string) {
    super(`not canonical: ${reason}`)
    this.name = 'NotCanonicalError'
  }
}

/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 code units, numbers as ECMAScript prints them, no white space.
 * Integers beyond the safe range are refused, since they would not survive a reader (decision 8). K5.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw new NotCanonicalError('a lone surrogate')
      return JSON.stringify(value)
    case 'number':
      if (!Number.isFinite(value)) throw new NotCanonicalError(`the number ${value}`)
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new NotCanonicalError(`the integer ${value} is not safe`)
      return JSON.stringify(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object': {
      if (value === null) return 'null'
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
      const members = Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
      return `{${members.map(([key, member]) => `${canonicalJson(key)}:${canonicalJson(member)}`).join(',')}}`
    }
    default:
      throw new NotCanonicalError(`a ${typeof value}`)
  }
}
