import { LingtaiError } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { foldEqual, placeProposals } from './dedupe.ts'
import type { Placement, PoolEntry } from './dedupe.ts'
import { readDecisions, readProposals, sift, textProblem } from './extraction-answer.ts'
import type { DropReason, ReadAnswer, ReadProposals } from './extraction-answer.ts'
import { askTwice, ModelUnreachableError } from './extraction-asker.ts'
import type { Subject } from './extraction-asker.ts'
import { nextBatch } from './extraction-batch.ts'
import type { ExtractionBatch } from './extraction-batch.ts'
import { candidateOf, readable, rewritten, sameMark, standsAs, targetsOf } from './extraction-candidate.ts'
import { DEDUPE_INSTRUCTIONS, dedupeQuestion, EXTRACTION_INSTRUCTIONS, extractionQuestion } from './extraction-prompt.ts'
import { MemoryChange } from './memory-change.ts'
import type { Candidate, ChangeDeps, Outcome } from './memory-change.ts'
import type { CanonicalRange, ExtractionRow, ExtractionStore, MemoryModel, MemoryRecaller, MemoryRow } from './ports.ts'
import { queryTokens } from './query.ts'
import { recallProfile } from './recall-profile.ts'

/** Memories of the pool that one proposal is compared with. */
const POOL_PER_PROPOSAL = 5
/** How often a batch is decided anew because its pool changed meanwhile. */
const STALE_POOL_TRIES = 3

export type ExtractionDeps = ChangeDeps & {
  unitOfWork: UnitOfWork
  clock: Clock
  extractions: ExtractionStore
  recaller: MemoryRecaller
  model: MemoryModel
}

export type ExtractionEnd = { outcome: 'finished' | 'given_up'; code: string | null; stored: number; dropped: number }

export type ExtractionOptions = {
  /** Called in the transaction that ends the extraction: the place to close the job's row (decision 28). */
  onEnd?: (end: ExtractionEnd) => Promise<void>
  /** The last attempt of a job: what cannot be done now is then given up on, visibly. */
  lastAttempt?: boolean
  /** Also where the model cannot be reached, which may pass. */
  lastHope?: boolean
  signal?: AbortSignal
}

type Drop = DropReason | 'duplicate' | 'rejected_before'
type Found = { candidates: Candidate[]; dropped: Drop[] }

/** Why a model's answers, or the absence of any, end an extraction. */
class GiveUp extends Error {
  readonly code: string
  readonly asked: number
  readonly runId: string | null
  constructor(code: string, runId: string | null, asked: number) {
    super(code)
    this.name = 'GiveUp'
    this.code = code
    this.asked = asked
    this.runId = runId
  }
}

/** Memories went on changing while it was decided what is new beside them. */
export class StalePoolError extends Error {
  constructor(canonizationId: string) {
    super(`the memories beside canonization ${canonizationId} keep changing`)
    this.name = 'StalePoolError'
  }
}

/** The kill switch is set: nothing is asked of a model, and nothing is given up. */
export class ExtractionStoppedError extends Error {
  override readonly name = 'ExtractionStoppedError'
}

/** What a last attempt may well end by; null for anything else. */
function hopelessCode(error: unknown): string | null {
  if (error instanceof ModelUnreachableError) return 'model_unavailable'
  return error instanceof StalePoolError ? 'pool_changed' : null
}

function contentProblems(placement: Placement): { index: number; problem: string }[] {
  const text = 'text' in placement ? placement.text : null
  const problem = text === null ? null : textProblem(text, DEDUPE_INSTRUCTIONS)
  return problem === null ? [] : [{ index: placement.index, problem }]
}

/** Writes memories out of what was canonized (spec/5 "Writing"). Idempotent per canonization; a kill between two steps loses no more than one call. */
export class ExtractionService {
  readonly #deps: ExtractionDeps

  constructor(deps: ExtractionDeps) {
    this.#deps = deps
  }

  /**
   * Goes through the range in batches, each stored in a transaction of its own. Answers how it ended, at once where it has ended before.
   * Throws not_found for an unknown canonization, ExtractionStoppedError under the kill switch, ModelUnreachableError where the model cannot be
   * reached, to be tried again; on the last attempt of a job whatever went wrong ends it, visibly, and what nobody expected is thrown after that.
   */
  async extract(canonizationId: string, options: ExtractionOptions = {}): Promise<ExtractionEnd> {
    try {
      const place = await this.#deps.extractions.place(canonizationId)
      if (!place) throw new LingtaiError('not_found')
      for (;;) {
        options.signal?.throwIfAborted()
        const row = await this.#deps.extractions.read(canonizationId)
        if (row && row.outcome !== 'running') return await this.#end(row, options, { repeated: true })
        if (await this.#deps.extractions.isStopped(place)) throw new ExtractionStoppedError()
        const ended = await this.#step(canonizationId, row, options)
        if (ended) return ended
      }
    } catch (error) {
      if (error instanceof GiveUp) {
        return this.#giveUp({ canonizationId, code: error.code, runId: error.runId, asked: error.asked }, options)
      }
      // A process that stops gives nothing up, and neither does an instance that is stopped.
      if (options.signal?.aborted === true || error instanceof ExtractionStoppedError) throw error
      if (options[error instanceof ModelUnreachableError ? 'lastHope' : 'lastAttempt'] !== true) throw error
      const code = hopelessCode(error)
      const end = await this.#giveUp({ canonizationId, code: code ?? 'unexpected_error', runId: null, asked: 0 }, options)
      if (code === null) throw error
      return end
    }
  }

  /** One batch, or the end. */
  async #step(canonizationId: string, row: ExtractionRow | null, options: ExtractionOptions): Promise<ExtractionEnd | null> {
    const { extractions } = this.#deps
    const range = await extractions.range(canonizationId)
    if (!range) throw new GiveUp('nothing_live', null, 0)
    const messages = (await extractions.messages(canonizationId)).map(readable)
    const names = { user: range.user_name ?? 'User', character: range.character_name }
    const batch = nextBatch({ messages, mark: row?.mark ?? null, zone: range.zone, names })
    // Everything after the mark was deleted meanwhile: what is done is done.
    if (!batch) throw new GiveUp('nothing_live', null, 0)
    return this.#extractBatch(range, row, batch, options)
  }

  async #extractBatch(
    range: CanonicalRange,
    row: ExtractionRow | null,
    batch: ExtractionBatch,
    options: ExtractionOptions,
  ): Promise<ExtractionEnd | null> {
    const question = extractionQuestion({ messages: batch.messages, zone: batch.zone })
    const answer = await askTwice(
      this.#deps.model,
      { range, batch, signal: options.signal, madeOf: [] },
      question,
      (text, isLast): ReadAnswer<ReadProposals> => {
        const read = readProposals(text)
        return read.ok && read.value.problems.length > 0 && !isLast ? { ok: false, problems: read.value.problems } : read
      },
    )
    if (!answer.ok) throw new GiveUp('extraction_invalid', answer.runId, answer.asked)
    const found = await this.#candidates(range, batch, answer)
    for (let tries = 1; ; tries++) {
      const pool = await this.#pool(range, found.candidates)
      // It shows what was proposed, and the memories beside it.
      const madeOf = [answer.contentId, ...pool.map(({ contentId }) => contentId)]
      const decided = await this.#decide({ range, batch, signal: options.signal, madeOf }, found.candidates, pool)
      if (!decided.ok) throw new GiveUp('dedupe_invalid', decided.runId, answer.asked + decided.asked)
      const runId = decided.runId ?? answer.runId
      const asked = answer.asked + decided.asked
      const applied = await this.#apply({ range, row, batch, found, placements: decided.placements, runId, asked }, options)
      if (applied !== 'stale') return applied
      if (tries === STALE_POOL_TRIES) throw new StalePoolError(range.canonization_id)
    }
  }

  /** Proposals that may become memories, classified, dated and embedded. */
  async #candidates(
    range: CanonicalRange,
    batch: ExtractionBatch,
    { value, runId }: { value: ReadProposals; runId: string },
  ): Promise<Found> {
    const { extractions, embeddings } = this.#deps
    const { proposals, invalid } = value
    const runIds = batch.sources.flatMap((source) => source.run_id ?? [])
    const { kept, dropped } = sift({
      proposals,
      messages: batch.sources.map((source) => ({ id: source.node_id, role: source.role })),
      instructions: EXTRACTION_INSTRUCTIONS,
      shown: await extractions.shownTo(range.owner_id, [...new Set(runIds)]),
    })
    const folded = foldEqual(
      kept,
      (proposal) => proposal.content,
      (first, again) => ({ ...first, source_message_ids: [...new Set([...first.source_message_ids, ...again.source_message_ids])] }),
    )
    const vectors = await embeddings.embed(
      folded.map((proposal) => proposal.content),
      { purpose: 'extraction', ownerId: range.owner_id, characterId: range.character_id, runId },
    )
    return {
      candidates: folded.map((proposal, index) => candidateOf(range, batch, proposal, vectors[index] ?? null)),
      dropped: [...Array.from({ length: invalid }, () => 'invalid' as const), ...dropped],
    }
  }

  /** Memories of the scope near to the candidates, proposals that still wait among them. */
  async #pool(range: CanonicalRange, candidates: readonly Candidate[]): Promise<PoolEntry[]> {
    const { recaller, embeddings, clock } = this.#deps
    const { owner_id, character_id, realm_id } = range
    const profile = recallProfile(embeddings.model)
    const pool = new Map<string, PoolEntry>()
    for (const candidate of candidates) {
      const { candidates: near } = await recaller.recall({
        owner_id,
        character_id,
        realm_id,
        ...queryTokens([{ text: candidate.text, weight: 1 }]),
        vector: embeddings.space && candidate.vector ? { space: embeddings.space, values: candidate.vector } : null,
        levels: ['explicit', 'heavy'],
        includeProposed: true,
        includeReal: false,
        now: clock.now(),
        ...profile,
        limit: POOL_PER_PROPOSAL,
      })
      for (const memory of near) {
        if (memory.state !== 'proposed' && memory.state !== 'live') continue
        const { memory_id: memoryId, version_id: versionId, content_id: contentId, text, type, level, state, mentions } = memory
        pool.set(memoryId, { memoryId, versionId, contentId, text, type, level, state, mentions })
      }
    }
    return [...pool.values()]
  }

  async #decide(
    about: Subject,
    candidates: readonly Candidate[],
    pool: readonly PoolEntry[],
  ): Promise<{ ok: true; placements: Placement[]; runId: string | null; asked: number } | { ok: false; runId: string; asked: number }> {
    if (candidates.length === 0 || pool.length === 0) {
      return { ok: true, placements: candidates.map((_, index) => ({ action: 'store', index })), runId: null, asked: 0 }
    }
    const proposals = candidates.map(({ text, type }) => ({ content: text, text, type }))
    const answer = await askTwice(this.#deps.model, about, dedupeQuestion(proposals, pool), (text): ReadAnswer<Placement[]> => {
      const read = readDecisions(text)
      if (!read.ok) return read
      const placed = placeProposals({ proposals, pool, decisions: read.value })
      const problems = placed.ok ? placed.placements.flatMap(contentProblems) : placed.problems
      if (placed.ok && problems.length === 0) return { ok: true, value: placed.placements }
      return { ok: false, problems: problems.map(({ index, problem }) => (index === null ? problem : `decision for ${index}: ${problem}`)) }
    })
    return answer.ok ? { ok: true, placements: answer.value, runId: answer.runId, asked: answer.asked } : answer
  }

  /** Stores a batch in one transaction; 'stale' where the pool is no longer what was decided about. */
  async #apply(
    step: {
      range: CanonicalRange
      row: ExtractionRow | null
      batch: ExtractionBatch
      found: Found
      placements: readonly Placement[]
      runId: string
      asked: number
    },
    options: ExtractionOptions,
  ): Promise<ExtractionEnd | null | 'stale'> {
    const { unitOfWork, extractions, store, clock } = this.#deps
    const { range, batch, found, placements, runId } = step
    const { canonization_id: canonizationId } = range
    return unitOfWork.run(async () => {
      const now = clock.now()
      // Held until the commit: a withdrawal waits, then finds these memories and flags them (case R12).
      if (!(await extractions.lockRange(canonizationId))) return null
      const row = await extractions.lock(canonizationId, range, now)
      // Somebody else stored this batch meanwhile.
      if (row.outcome !== 'running' || !sameMark(row.mark, step.row?.mark ?? null)) return null
      const change = await MemoryChange.begin(this.#deps, range, { actor: 'extraction', tag: 'memory.extract', now, runId, canonizationId })
      const targetIds = placements.flatMap(targetsOf).map((target) => target.memoryId)
      await store.lockRows(range.owner_id, targetIds)
      const standing = new Map((await store.findAll(range.owner_id, targetIds, now)).map((memory) => [memory.id, memory]))
      if (!placements.flatMap(targetsOf).every((target) => standsAs(standing.get(target.memoryId), target))) return 'stale'
      const drops: Drop[] = [...found.dropped]
      let stored = 0
      for (const placement of placements) {
        const candidate = found.candidates[placement.index]
        if (!candidate) continue
        const outcome = await this.#place(change, candidate, placement, standing)
        if (outcome === 'stored') stored += 1
        else drops.push(outcome)
      }
      for (const reason of drops) change.record({ type: 'memory.dropped', payload: { canonization_id: canonizationId, reason } })
      const next: ExtractionRow = {
        outcome: batch.last ? 'finished' : 'running',
        mark: batch.end,
        code: null,
        tries: row.tries + step.asked,
        proposals: row.proposals + found.candidates.length + found.dropped.length,
        stored: row.stored + stored,
        dropped: row.dropped + drops.length,
      }
      if (batch.last) {
        const { proposals, stored: all, dropped } = next
        change.record({
          type: 'extraction.finished',
          payload: { canonization_id: canonizationId, run_id: runId, proposals, stored: all, dropped },
        })
      }
      await change.finish()
      await extractions.save(canonizationId, next, now)
      return batch.last ? this.#end(next, options) : null
    })
  }

  async #place(
    change: MemoryChange,
    candidate: Candidate,
    placement: Placement,
    standing: ReadonlyMap<string, MemoryRow>,
  ): Promise<Outcome> {
    if (placement.action === 'store') return change.add(candidate)
    const targets = targetsOf(placement).flatMap((target) => standing.get(target.memoryId) ?? [])
    const [first, ...others] = targets
    if (!first) throw new StalePoolError(change.scope.character_id)
    if (placement.action === 'reinforce') {
      await change.reinforce(first, candidate.sources)
      return 'duplicate'
    }
    return change.replace([first, ...others], rewritten(candidate, placement.text), placement.action)
  }

  async #giveUp(
    { canonizationId, code, runId, asked }: { canonizationId: string; code: string; runId: string | null; asked: number },
    options: ExtractionOptions,
  ): Promise<ExtractionEnd> {
    const { unitOfWork, extractions, log, clock } = this.#deps
    return unitOfWork.run(async () => {
      const now = clock.now()
      const place = await extractions.place(canonizationId)
      if (!place) throw new LingtaiError('not_found')
      const row = await extractions.lock(canonizationId, place, now)
      if (row.outcome !== 'running') return this.#end(row, options)
      const next: ExtractionRow = { ...row, outcome: 'given_up', code, tries: row.tries + asked }
      await log.append({
        stream: `memory:${place.character_id}`,
        ownerId: place.owner_id,
        events: [
          {
            type: 'extraction.given_up',
            payload: { canonization_id: canonizationId, run_id: runId, code, tries: next.tries },
            actor: 'extraction',
            at: now.toISOString(),
            cause: { tag: 'memory.extract' },
            character_id: place.character_id,
          },
        ],
      })
      await extractions.save(canonizationId, next, now)
      return this.#end(next, options)
    })
  }

  async #end(row: ExtractionRow, options: ExtractionOptions, { repeated = false } = {}): Promise<ExtractionEnd> {
    const end: ExtractionEnd = {
      outcome: row.outcome === 'finished' ? 'finished' : 'given_up',
      code: row.code,
      stored: row.stored,
      dropped: row.dropped,
    }
    if (repeated) await this.#deps.unitOfWork.run(async () => options.onEnd?.(end))
    else await options.onEnd?.(end)
    return end
  }
}
