import { LingtaiError } from '#contracts'

/** Containers inside containers in any JSON that comes in (decision 7). */
const MAX_DEPTH = 64

/** A place inside a body as it is told to clients: `citations[0].from`; the whole body is `body`. */
export function fieldPath(path: readonly PropertyKey[], root = ''): string {
  const text = path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`
    return before === '' ? String(step) : `${before}.${String(step)}`
  }, root)
  return text === '' ? 'body' : text
}

/** A string as it may be stored: no NUL, surrogates in pairs (decision 7). Throws validation_failed. */
export function cleanText(text: string, path: readonly PropertyKey[], root = ''): string {
  if (text.includes('\0')) refuse(path, root, 'must not contain a NUL character')
  return text.toWellFormed()
}

/**
 * Cleans parsed JSON in place: every string and key, wherever it stands. Refuses NUL, depth over 64 and `__proto__` as a key.
 * Throws validation_failed with the place.
 */
export function cleanJson(value: unknown, root = ''): unknown {
  return cleanValue(value, [], root)
}

/** `path` is where the value stands; it is lent to the calls below and comes back as it was. */
function cleanValue(value: unknown, path: PropertyKey[], root: string): unknown {
  if (typeof value === 'string') return cleanText(value, path, root)
  if (typeof value !== 'object' || value === null) return value
  if (path.length >= MAX_DEPTH) refuse(path.slice(0, 8), root, `is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      path.push(index)
      value[index] = cleanValue(item, path, root)
      path.pop()
    }
    return value
  }
  const object = value as Record<string, unknown>
  for (const key of Object.keys(object)) {
    path.push(key)
    if (key === '__proto__') refuse(path, root, 'is no allowed name')
    const name = cleanText(key, path, root)
    const item = cleanValue(object[key], path, root)
    if (name !== key) delete object[key]
    object[name] = item
    path.pop()
  }
  return object
}

function refuse(path: readonly PropertyKey[], root: string, message: string): never {
  // The place is told without the very characters it is refused for.
  const place = fieldPath(path, root).replaceAll('\0', '�').toWellFormed().slice(0, 200)
  throw new LingtaiError('validation_failed', undefined, { errors: [{ path: place, message }] })
}
