import { createHmac } from 'node:crypto'
import type { DedupeDecision, MemoryLevel, MemoryState, MemoryType } from '#contracts'

const edges = /^[\s"'“”‘’«»「」『』(（]+|[\s.。!！?？…,，;；:："'“”‘’«»「」『』)）]+$/gu

/** The form in which two texts are the same memory: width, case, space and the punctuation around it do not count. */
export function normalisedText(text: string): string {
  const folded = text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ')
  const bare = folded.replace(edges, '')
  return bare === '' ? folded.trim() : bare
}

/** Keyed digest of a text's normalised form (32 bytes): unique among live memories of a scope, and what a rejected item is known by. */
export function memoryDigest(key: Uint8Array, text: string): Uint8Array {
  return createHmac('sha256', key).update(normalisedText(text), 'utf8').digest()
}

/** A memory that a proposal may be about, as it stands. */
export type PoolEntry = {
  memoryId: string
  versionId: string
  contentId: string
  text: string
  type: MemoryType
  level: MemoryLevel
  state: Extract<MemoryState, 'proposed' | 'live'>
  mentions: number
}

/** What dedupe needs to know of a proposal. */
export type Proposal = { text: string; type: MemoryType }

/** What becomes of each proposal, by its index. `text` is the text of the result. */
export type Placement =
  | { action: 'store'; index: number }
  | { action: 'reinforce'; index: number; target: PoolEntry }
  | { action: 'update'; index: number; target: PoolEntry; text: string }
  | { action: 'merge'; index: number; targets: readonly [PoolEntry, ...PoolEntry[]]; text: string }

/** Decisions that cannot be carried out, in words for the model's second try. */
export type DecisionProblem = { index: number | null; problem: string }

/**
 * Turns a model's batch of decisions into placements. Every proposal is decided once, targets are in the pool it was shown, and no target
 * is changed twice; otherwise the problems come back and nothing is placed.
 */
export function placeProposals(input: {
  proposals: readonly Proposal[]
  pool: readonly PoolEntry[]
  decisions: readonly DedupeDecision[]
}): { ok: true; placements: Placement[] } | { ok: false; problems: DecisionProblem[] } {
  const pool = new Map(input.pool.map((entry) => [entry.memoryId, entry]))
  const problems: DecisionProblem[] = []
  const placements: Placement[] = []
  const decided = new Set<number>()
  const changed = new Set<string>()
  for (const decision of input.decisions) {
    const proposal = input.proposals[decision.index]
    const refuse = (problem: string) => problems.push({ index: decision.index, problem })
    if (!proposal) {
      refuse(`there is no proposal ${decision.index}`)
      continue
    }
    if (decided.has(decision.index)) {
      refuse('this proposal is decided twice')
      continue
    }
    decided.add(decision.index)
    if (decision.action === 'store') {
      placements.push({ action: 'store', index: decision.index })
      continue
    }
    const ids = [...new Set(decision.target_ids)]
    const targets = ids.flatMap((id) => pool.get(id) ?? [])
    const [first, ...others] = targets
    if (targets.length !== ids.length) refuse('target_ids holds an id that is not in the pool')
    else if (!first) refuse(`${decision.action} needs a target`)
    else if (decision.action === 'skip') placements.push({ action: 'reinforce', index: decision.index, target: first })
    else if (decision.action === 'update' && others.length > 0) refuse('update has exactly one target; use merge for several')
    else if (targets.some((target) => changed.has(target.memoryId))) refuse('a target is changed by two decisions')
    else {
      for (const target of targets) changed.add(target.memoryId)
      const text = decision.content ?? proposal.text
      if (decision.action === 'update') placements.push({ action: 'update', index: decision.index, target: first, text })
      else placements.push({ action: 'merge', index: decision.index, targets: [first, ...others], text })
    }
  }
  for (const index of input.proposals.keys()) if (!decided.has(index)) problems.push({ index, problem: 'this proposal has no decision' })
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, placements: placements.toSorted((left, right) => left.index - right.index) }
}

/** Proposals whose normalised texts are the same become one, with the union of what `join` brings together. Order of first appearance. */
export function foldEqual<T>(items: readonly T[], textOf: (item: T) => string, join: (first: T, again: T) => T): T[] {
  const folded = new Map<string, T>()
  for (const item of items) {
    const key = normalisedText(textOf(item))
    const known = folded.get(key)
    folded.set(key, known === undefined ? item : join(known, item))
  }
  return [...folded.values()]
}
