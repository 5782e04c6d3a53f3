import type { RecallAuditView } from '#contracts'
import { scrub } from './scrub.ts'
import { tokenize } from './tokenize.ts'

export type CutBy = NonNullable<RecallAuditView['hits'][number]['cut_by']>

/** Most memories, and UTF-16 units of their texts, that one recall gives. */
export type RecallLimits = { items: number; characters: number }

/** What became of a candidate: its place among those given (1 first), or the limit that cut it. `text` is what may be shown. */
export type Selected<T> = T & { shown: string; masked: boolean } & ({ rank: number; cutBy: null } | { rank: null; cutBy: CutBy })

/** Share of tokens in common from which two texts say the same. */
const SAME_SHARE = 0.85
const decisive = /^\p{N}+$|^(?:no|not|never|none|nor|without|cannot|\p{L}+nt|不|没|無|无|非|别|未|勿)$/u

/** True where two texts say the same in nearly the same words; a number or a negation that only one of them has makes them differ. */
export function saysTheSame(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  const common = left.intersection(right).size
  const apart = left.symmetricDifference(right)
  const all = common + apart.size
  if (all === 0 || common / all < SAME_SHARE) return false
  for (const token of apart) if (decisive.test(token)) return false
  return true
}

/**
 * Takes candidates in their order until the limits are reached. Secrets are masked again; near-duplicates share the slot of the first; one
 * that is too long for what is left is passed over, and shorter ones after it may still fit (case R22).
 */
export function select<T extends { text: string }>(candidates: readonly T[], limits: RecallLimits): Selected<T>[] {
  const given: ReadonlySet<string>[] = []
  let characters = 0
  return candidates.map((candidate): Selected<T> => {
    const { text: shown, masked } = scrub(candidate.text)
    const scrubbed = { ...candidate, shown, masked: masked.length > 0 }
    const cut = (cutBy: CutBy): Selected<T> => ({ ...scrubbed, rank: null, cutBy })
    const words = new Set(tokenize(shown).counts.keys())
    if (given.some((other) => saysTheSame(other, words))) return cut('near_duplicate')
    if (given.length >= limits.items) return cut('items')
    if (characters + shown.length > limits.characters) return cut('characters')
    characters += shown.length
    given.push(words)
    return { ...scrubbed, rank: given.length, cutBy: null }
  })
}
