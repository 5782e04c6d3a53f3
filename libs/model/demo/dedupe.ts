import type { DedupeAnswer, DedupeRequest } from '#contracts/memory-extraction'
import { languageOf } from './language.ts'

type Decision = DedupeAnswer['decisions'][number]
type Item = DedupeRequest['pool'][number]

const normal = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

/** Attributes that hold one value at a time: another value supersedes. The rest of a sentence after it is the value. */
const SINGLE_VALUED: readonly RegExp[] = [
  /^(.*?\bname is) /iu,
  /^(.*?)\b(?:lives in|moved to) /iu,
  /^(.*?) works (?:as|at|for|in) /iu,
  /^(.*?\bfavou?rite [\p{L} ]+? is) /iu,
  /^(.*?)名叫/u,
  /^(.*?)(?:住在|搬到了)/u,
  /^(.*?最喜欢的.+?是)/u,
]
/** Likings of opposite sign about the same thing. */
const LIKES = /^(.*?) ?(?:likes|loves|enjoys|prefers|adores|喜欢|爱|偏爱|热爱)(?<!不喜欢|不爱) ?(.+)$/iu
const DISLIKES = /^(.*?) ?(?:dislikes|hates|不喜欢|讨厌) ?(.+)$/iu

const attributeOf = (content: string): string | undefined => {
  for (const [at, sign] of SINGLE_VALUED.entries()) {
    const match = sign.exec(content)
    if (match !== null) return `${at} ${normal(match[1] ?? '')}`
  }
  return undefined
}

const likingOf = (content: string): { who: string; what: string; isLiked: boolean } | undefined => {
  const disliked = DISLIKES.exec(content)
  if (disliked !== null) return { who: normal(disliked[1] ?? ''), what: normal(disliked[2] ?? ''), isLiked: false }
  const liked = LIKES.exec(content)
  return liked === null ? undefined : { who: normal(liked[1] ?? ''), what: normal(liked[2] ?? ''), isLiked: true }
}

const features = (text: string): Set<string> => {
  const bare = normal(text)
  if (languageOf(text) !== 'zh') return new Set(bare.split(' '))
  const characters = [...bare.replaceAll(' ', '')]
  return new Set(characters.slice(1).map((character, at) => `${characters[at]}${character}`))
}

/** Shares of what each says that the other says as well. */
const overlap = (left: string, right: string): { left: number; right: number } => {
  const [a, b] = [features(left), features(right)]
  const common = [...a].filter((feature) => b.has(feature)).length
  return { left: common / Math.max(1, a.size), right: common / Math.max(1, b.size) }
}

const decide = (proposal: { index: number; content: string }, pool: readonly Item[]): Decision => {
  const { index, content } = proposal
  const same = pool.find((item) => normal(item.content) === normal(content))
  if (same !== undefined) return { index, action: 'skip', target_ids: [same.id] }
  const attribute = attributeOf(content)
  const superseded = attribute === undefined ? undefined : pool.find((item) => attributeOf(item.content) === attribute)
  if (superseded !== undefined) return { index, action: 'update', target_ids: [superseded.id], content }
  const liking = likingOf(content)
  for (const item of pool) {
    const other = likingOf(item.content)
    if (liking !== undefined && other !== undefined && liking.who === other.who && liking.what === other.what) {
      return liking.isLiked === other.isLiked
        ? { index, action: 'skip', target_ids: [item.id] }
        : { index, action: 'update', target_ids: [item.id], content }
    }
  }
  for (const item of pool) {
    const shares = overlap(content, item.content)
    if (shares.left >= 0.95) return { index, action: 'skip', target_ids: [item.id] }
    // It says all that the old one says, and more.
    if (shares.right >= 0.95) return { index, action: 'merge', target_ids: [item.id], content }
  }
  return { index, action: 'store', target_ids: [] }
}

/** The demo model's batch decision. A target is changed once: what comes second to it is stored beside it. */
export const decideDuplicates = (request: DedupeRequest): DedupeAnswer => {
  const changed = new Set<string>()
  const decisions = request.proposals.map((proposal) => {
    const decision = decide(proposal, request.pool)
    const [target] = decision.target_ids
    if (target === undefined || decision.action === 'skip') return decision
    if (changed.has(target)) return { index: proposal.index, action: 'store' as const, target_ids: [] }
    changed.add(target)
    return decision
  })
  return { decisions }
}
