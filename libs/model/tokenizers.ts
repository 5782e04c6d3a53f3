import { ESTIMATE_ID, estimateTokens } from './estimate-tokens.ts'

/** Counts tokens of one vocabulary. `id` goes into records and cache keys; `isExact` is false for the over-estimate. Synchronous once loaded. */
export type Tokenizer = { readonly id: string; readonly isExact: boolean; count(text: string): number }

export type TokenizerId = 'o200k_base' | 'cl100k_base' | typeof ESTIMATE_ID

export type Tokenizers = {
  /**
   * The tokenizer of a model by its name: OpenAI's own where the name says so, else the over-estimate. The first call for an OpenAI name
   * loads its vocabulary (o200k_base: 0.4 s of CPU and 63 MB, measured on 2 cores), later ones share it.
   */
  forModel(model: string): Promise<Tokenizer>
  /** Which one it will be, without loading it. */
  idForModel(model: string): TokenizerId
  /** Cached count: the key is (tokenizer, content digest), so that a warm rebuild counts nothing again (spec/3). */
  countContent(tokenizer: Tokenizer, content: { digest: string; text: string }): number
}

const OPENAI_MODELS: [RegExp, TokenizerId][] = [
  [/^(?:gpt-4o|gpt-4\.[1-9]|gpt-[5-9]|gpt-oss|chatgpt-|o[1-9](?:-|$)|codex-)/, 'o200k_base'],
  [/^(?:gpt-4(?:-|$)|gpt-3\.5|text-embedding-)/, 'cl100k_base'],
]

/** A run of one kind longer than this is counted in slices: byte-pair merging is quadratic in a run (20,000 Han characters: 3.5 s whole). */
const LONGEST_RUN = 256
const RUNS = /[^\s\p{L}\p{N}]{257,}|\s{257,}|[\p{L}\p{N}]{257,}/gu

/** Counts slice by slice where a text holds very long runs; otherwise at once. A cut costs at most a token or two too many. */
const countBounded = (count: (text: string) => number, text: string): number => {
  let sum = 0
  let from = 0
  for (const match of text.matchAll(RUNS)) {
    sum += match.index > from ? count(text.slice(from, match.index)) : 0
    const run = match[0]
    for (let at = 0; at < run.length;) {
      let end = Math.min(run.length, at + LONGEST_RUN)
      // Never between the halves of a character.
      if (end < run.length && run.charCodeAt(end) >= 0xdc00 && run.charCodeAt(end) <= 0xdfff) end += 1
      sum += count(run.slice(at, end))
      at = end
    }
    from = match.index + run.length
  }
  return from === 0 ? count(text) : sum + (from < text.length ? count(text.slice(from)) : 0)
}

const ordinaryText = { disallowedSpecial: new Set<string>() }

const loaders: Record<Exclude<TokenizerId, typeof ESTIMATE_ID>, () => Promise<(text: string) => number>> = {
  // Names of special tokens inside a text are text.
  o200k_base: async () => {
    const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base')
    return (text) => countTokens(text, ordinaryText)
  },
  cl100k_base: async () => {
    const { countTokens } = await import('gpt-tokenizer/encoding/cl100k_base')
    return (text) => countTokens(text, ordinaryText)
  },
}

const estimate: Tokenizer = { id: ESTIMATE_ID, isExact: false, count: estimateTokens }

const idForModel = (model: string): TokenizerId => {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  return OPENAI_MODELS.find(([pattern]) => pattern.test(name))?.[1] ?? ESTIMATE_ID
}

/** Tokenizers with a cache of counts, oldest entries dropped first. `cacheEntries` bounds it (about 150 bytes an entry). */
export const createTokenizers = ({ cacheEntries = 50_000 } = {}): Tokenizers => {
  const loaded = new Map<TokenizerId, Promise<Tokenizer>>()
  const counts = new Map<string, number>()

  const load = async (id: Exclude<TokenizerId, typeof ESTIMATE_ID>): Promise<Tokenizer> => {
    const count = await loaders[id]()
    return { id, isExact: true, count: (text) => (text === '' ? 0 : countBounded(count, text)) }
  }

  return {
    idForModel,
    forModel: async (model) => {
      const id = idForModel(model)
      if (id === ESTIMATE_ID) return estimate
      const present = loaded.get(id) ?? load(id)
      loaded.set(id, present)
      return present
    },
    countContent: (tokenizer, content) => {
      const key = `${tokenizer.id}:${content.digest}`
      const known = counts.get(key)
      if (known !== undefined) return known
      const count = tokenizer.count(content.text)
      if (counts.size >= cacheEntries) {
        const oldest = counts.keys().next()
        if (oldest.done !== true) counts.delete(oldest.value)
      }
      counts.set(key, count)
      return count
    },
  }
}
