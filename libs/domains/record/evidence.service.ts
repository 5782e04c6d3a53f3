import { LingtaiError } from '#contracts'
import type { Evidence, EvidenceContent, EvidenceEntry, EvidenceNode } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore, StoredContent } from '#kernel/ports/content-store'
import type { EventLog, StoredEvent } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { headLeaf } from '#kernel/record/anchor'
import type { AnchoredHead, AnchorSigner } from '#kernel/record/anchor'
import { canonicalJson } from '#kernel/record/canonical-json'
import { leafHash, merklePath } from '#kernel/record/merkle'
import type { AnchorStore } from './anchor-ports.ts'

type Statement = Evidence['statement']

/** What evidence shows of a run beside its own stream. */
export interface EvidenceSource {
  node(ownerId: string, nodeId: string): Promise<EvidenceNode | null>
  /** Node ids from the root to a node. */
  lineage(ownerId: string, nodeId: string): Promise<string[]>
  canonizations(ownerId: string, nodeId: string): Promise<Statement['canonizations']>
  /** The newest anchor over a stream. */
  lastAnchorOf(stream: string): Promise<number | null>
}

export type EvidenceDeps = {
  log: EventLog
  runs: RunStore
  contents: ContentStore
  source: EvidenceSource
  anchors: AnchorStore
  signer: AnchorSigner
  clock: Clock
}

const PAGE = 1_000

/** Types of events that say what was decided. */
const POLICY_TYPES = /^(policy\.decided|veto|rewrite|budget\.exhausted)$/
/** Types of events that say what was sent out, and what of it a person allowed. */
const EFFECT_TYPES = /^(llm\.(requested|completed|failed|unknown)|effect\..+|tool\..+|approval\..+)$/

/** One run as a file that proves itself (K5, spec/2 "Run loop with actions"). */
export class EvidenceService {
  readonly #deps: EvidenceDeps

  constructor(deps: EvidenceDeps) {
    this.#deps = deps
  }

  /** Throws not_found for a run that is not the owner's. */
  async of(ownerId: string, runId: string): Promise<Evidence> {
    const { runs, source, anchors, signer, clock } = this.#deps
    const run = await runs.find(ownerId, runId)
    if (!run) throw new LingtaiError('not_found')
    const stored = await this.#events(`run:${runId}`)
    const entries = stored.map(({ record }): EvidenceEntry => ({ seq: record.seq, type: record.type, payload: record.payload }))
    const nodeOf = async (id: string | null): Promise<EvidenceNode | null> => (id === null ? null : source.node(ownerId, id))
    const [question, candidate] = await Promise.all([nodeOf(run.question_id), nodeOf(run.candidate_id)])
    const statement: Statement = {
      made_at: clock.now().toISOString(),
      instance_id: (await anchors.instance()).id,
      run: describe(run),
      question,
      candidate,
      lineage: run.question_id === null ? [] : await source.lineage(ownerId, run.question_id),
      canonizations: run.candidate_id === null ? [] : await source.canonizations(ownerId, run.candidate_id),
      contents: await this.#contents(run, stored, [question?.content_id, candidate?.content_id]),
      events: stored.map((event) => ({ seq: event.record.seq, canonical: event.canonical, hash: hex(event.hash) })),
      policies: entries.filter((entry) => POLICY_TYPES.test(entry.type)),
      effects: entries.filter((entry) => EFFECT_TYPES.test(entry.type)),
      usage: usageOf(entries),
      proof: await this.#proof(`run:${runId}`),
    }
    return { lingtai_evidence: 1, statement, public_key: signer.publicKey, signature: signer.sign(canonicalJson(statement)) }
  }

  async #events(stream: string): Promise<StoredEvent[]> {
    const events: StoredEvent[] = []
    for (let after = 0; ;) {
      const page = await this.#deps.log.read(stream, { after, limit: PAGE })
      events.push(...page)
      if (page.length < PAGE) return events
      after = page.at(-1)?.record.seq ?? after
    }
  }

  /** Every content that the events, the question or the answer refer to, in that order. */
  async #contents(run: RunRow, events: readonly StoredEvent[], more: readonly (string | null | undefined)[]): Promise<EvidenceContent[]> {
    const ids = new Set(events.flatMap(({ record }) => record.content_digests.map((entry) => entry.content_id)))
    for (const id of more) if (id) ids.add(id)
    const stored = await this.#deps.contents.get([...ids])
    const found: EvidenceContent[] = []
    for (const id of ids) {
      const content = stored.get(id)
      if (content && content.owner_id === run.owner_id) found.push(describeContent(content))
      else if (!content && id === run.candidate_id) found.push(await this.#beingWritten(run, id))
    }
    return found
  }

  /** The answer of a run that is under way: its deltas so far. */
  async #beingWritten(run: RunRow, id: string): Promise<EvidenceContent> {
    const segments = await this.#deps.runs.segments(run.id)
    // An answer that was sealed between the two looks is stored by now.
    const sealed = segments.length === 0 ? (await this.#deps.contents.get([id])).get(id) : undefined
    if (sealed) return describeContent(sealed)
    let at = 0
    return {
      id,
      media_type: 'text/plain',
      erased: false,
      digest: null,
      salt: null,
      body: segments.map((segment) => segment.body).join(''),
      bytes: null,
      segments: segments.map((segment) => {
        const from = at
        at += segment.body.length
        return { from, to: at, salt: base64(segment.salt) }
      }),
    }
  }

  async #proof(stream: string): Promise<Statement['proof']> {
    const { anchors, source } = this.#deps
    const seq = await source.lastAnchorOf(stream)
    const [anchor] = seq === null ? [] : await anchors.list(seq - 1, 1)
    if (seq === null || anchor?.seq !== seq) return null
    const leaves: Uint8Array[] = []
    let found: { head: AnchoredHead; index: number } | null = null
    for (let after = ''; ;) {
      const page = await anchors.heads(seq, after, PAGE)
      for (const head of page) {
        if (head.stream === stream) found = { head, index: leaves.length }
        leaves.push(leafHash(headLeaf(head)))
      }
      const last = page.at(-1)
      if (!last || page.length < PAGE) break
      after = last.stream
    }
    if (!found) return null
    const path = merklePath(leaves, found.index).map(({ side, hash }) => ({ side, hash: hex(hash) }))
    return { anchor, head: found.head, path }
  }
}

function describe(run: RunRow): Statement['run'] {
  return {
    id: run.id,
    owner_id: run.owner_id,
    kind: run.kind,
    state: run.state,
    reason: run.reason,
    character_id: run.character_id,
    tree_id: run.tree_id,
    persona_version_id: run.persona_version_id,
    trace_id: run.trace_id,
    seed: run.settings.seed,
    requested_at: run.requested_at.toISOString(),
    started_at: run.started_at?.toISOString() ?? null,
    ended_at: run.ended_at?.toISOString() ?? null,
  }
}

function describeContent(content: StoredContent): EvidenceContent {
  return {
    id: content.id,
    media_type: content.media_type,
    erased: content.erased,
    digest: hex(content.digest),
    salt: content.salt && base64(content.salt),
    body: content.body,
    bytes: content.bytes && base64(content.bytes),
    segments: (content.layout?.segments ?? []).map(({ from, to, salt }) => ({ from, to, salt })),
  }
}

function usageOf(entries: readonly EvidenceEntry[]): Statement['usage'] {
  const sum = (type: string, name: string): number =>
    entries.filter((entry) => entry.type === type).reduce((total, { payload }) => total + Number(payload[name] ?? 0), 0)
  return {
    requests: entries.filter((entry) => entry.type === 'llm.requested').length,
    prompt_tokens: sum('llm.completed', 'prompt_tokens'),
    completion_tokens: sum('llm.completed', 'completion_tokens'),
    settled_tokens: sum('budget.settled', 'tokens'),
    estimated: entries.some(({ type, payload }) => type === 'budget.settled' && payload['estimated'] === true),
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
