/** What stands in place of a secret. */
export const SECRET_MASK = '[secret]'

/** Shorter values (placeholders such as `ollama` or `lm-studio`) are no secrets and would mask ordinary words. */
const SHORTEST_SECRET = 12

export type SecretMasker = {
  /** Masks what can be decided and holds back the tail that may be the beginning of a secret (at most the longest one's length). */
  push(text: string): string
  /** The stream ended: what is held back is no secret any more, or only its beginning. */
  flush(): string
}

const escapeForRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Masks known secrets in streamed text, wherever the cuts fall (decision 37). The result equals masking the whole text at once. */
export const createSecretMasker = (secrets: readonly string[]): SecretMasker => {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length)
  const longest = known[0]?.length ?? 0
  if (longest === 0) return { push: (text) => text, flush: () => '' }
  const pattern = new RegExp(known.map(escapeForRegExp).join('|'), 'g')
  const firstLetters = new Set(known.map((secret) => secret[0]))
  let pending = ''

  /** Where the longest tail begins that is a beginning of some secret. */
  const undecidedFrom = (text: string): number => {
    for (let at = Math.max(0, text.length - longest + 1); at < text.length; at++) {
      if (!firstLetters.has(text[at])) continue
      const tail = text.slice(at)
      if (known.some((secret) => secret.length > tail.length && secret.startsWith(tail))) return at
    }
    return text.length
  }

  return {
    push: (text) => {
      const whole = pending + text
      let cut = undecidedFrom(whole)
      for (const match of whole.matchAll(pattern)) {
        // A secret that reaches into the undecided tail waits with it.
        if (match.index < cut && match.index + match[0].length > cut) cut = match.index
      }
      pending = whole.slice(cut)
      return whole.slice(0, cut).replace(pattern, SECRET_MASK)
    },
    flush: () => {
      const rest = pending.replace(pattern, SECRET_MASK)
      pending = ''
      return rest
    },
  }
}

/** Masks known secrets in a whole text. */
export const maskSecrets = (text: string, secrets: readonly string[]): string => {
  const masker = createSecretMasker(secrets)
  return masker.push(text) + masker.flush()
}
