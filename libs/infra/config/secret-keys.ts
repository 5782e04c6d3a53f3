/** A key for what is stored encrypted: 32 bytes, named so that older ones can still be read (decision 38). */
export type SecretKey = { id: string; key: Uint8Array }

const KEY_BYTES = 32

/**
 * Reads `id:key,id:key`, keys in base64, base64url or hex. Each fault is told without the key itself.
 */
export function readSecretKeys(value: string | undefined, report: (fault: string) => void): SecretKey[] {
  const keys: SecretKey[] = []
  for (const [index, item] of (value ?? '').split(',').entries()) {
    const text = item.trim()
    if (text === '') continue
    const colon = text.indexOf(':')
    const id = text.slice(0, colon)
    const key = decodeKey(text.slice(colon + 1))
    if (colon < 1 || !/^[A-Za-z0-9_-]{1,32}$/.test(id)) {
      report(`entry ${index + 1} must be id:key, with an id of letters, digits, - and _`)
    } else if (key === undefined) {
      report(`the key of ${id} must be ${KEY_BYTES} bytes in base64 or hex; \`openssl rand -base64 32\` makes one`)
    } else if (keys.some((other) => other.id === id)) {
      report(`${id} is given twice`)
    } else keys.push({ id, key })
  }
  return keys
}

function decodeKey(text: string): Uint8Array | undefined {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex')
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.byteLength === KEY_BYTES ? key : undefined
}
