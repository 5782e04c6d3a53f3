import { tokenize, tokensOf } from './tokenize.ts'

/** One of the texts that a recall asks with; both the last message and the recent dialogue, since each wins on different questions. */
export type QueryText = { text: string; weight: number }

/** How much recent dialogue goes into a query, in UTF-16 units, counted from its end. */
export const DIALOGUE_MAX_UNITS = 2_000

/** The query of a turn: the last user message, and the dialogue that ends with it (oldest first). Blank texts are left out. */
export function queryTexts({ message, dialogue }: { message: string; dialogue: string }): QueryText[] {
  const recent = dialogue.slice(-DIALOGUE_MAX_UNITS).toWellFormed()
  return [message, recent.trim() === message.trim() ? '' : recent].filter((text) => text.trim() !== '').map((text) => ({ text, weight: 1 }))
}

// Words of questions and of grammar: they stand in every text and say nothing of what it is about. Left out of queries, never out of the
// index, so that a query of one of them alone still finds (measured on LoCoMo: +6 points of recall@10, see docs/benchmarks/memory.md).
const commonWords = `
  a an the of to in on at for and or but is are was were be been being am do does did doing done have has had having i you he she it we they me
  him us them my your his her its our their mine yours this that these those what when where who whom whose which how why with without from
  by as so not no if about into than then there here just can could will would should may might must shall up out over also any some all
  i'm you're he's she's it's we're they're don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't shouldn't`
const commonSigns = '的了是在我你他她它们有和就不人都一个上也很到说要去会着没看好自己这那吗吧呢啊呀么什怎与及而被把让给跟又还再最里下'
const common: ReadonlySet<string> = new Set([...tokensOf(commonWords), ...commonSigns])

/** Tokens of a query with their weights, parallel arrays: what the text leg asks the index for. */
export type QueryTokens = { tokens: string[]; weights: number[] }

/**
 * Each text's tokens, weighted by how often they stand in it over the square root of how many it has, so that a long dialogue does not
 * drown the question. Common words count only where the whole query is made of them.
 */
export function queryTokens(texts: readonly QueryText[]): QueryTokens {
  const telling = collect(texts, (token) => !common.has(token))
  return telling.tokens.length > 0 ? telling : collect(texts, () => true)
}

function collect(texts: readonly QueryText[], keeps: (token: string) => boolean): QueryTokens {
  const weights = new Map<string, number>()
  for (const { text, weight } of texts) {
    const counts = [...tokenize(text).counts].filter(([token]) => keeps(token))
    for (const [token, count] of counts) weights.set(token, (weights.get(token) ?? 0) + (weight * count) / Math.sqrt(counts.length))
  }
  return { tokens: [...weights.keys()], weights: [...weights.values()] }
}

/** The weighted sum of the texts' vectors, normalised: one query vector, since cosine is linear. Null where it has no direction. */
export function combineVectors(vectors: readonly Float32Array[], weights: readonly number[]): Float32Array | null {
  const dimensions = vectors[0]?.length ?? 0
  const sum = new Float64Array(dimensions)
  for (const [index, vector] of vectors.entries()) {
    if (vector.length !== dimensions) throw new RangeError(`vectors of ${dimensions} and ${vector.length} dimensions`)
    const weight = weights[index] ?? 1
    for (let at = 0; at < dimensions; at++) sum[at] = (sum[at] ?? 0) + weight * (vector[at] ?? 0)
  }
  const norm = Math.sqrt(sum.reduce((total, value) => total + value * value, 0))
  return norm > 1e-6 && Number.isFinite(norm) ? Float32Array.from(sum, (value) => value / norm) : null
}
