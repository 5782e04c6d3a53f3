import { toSlug } from '#contracts'
import type { ContentDigest, EventPayload } from '#contracts'
import { FORBIDDEN_POLICY_VERSION, judgeRequest } from '#kernel/gate/forbidden-gate'
import type { ReferenceFacts } from '#kernel/gate/forbidden-gate'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore, StoredContent } from '#kernel/ports/content-store'
import type { ChatRequestBody } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import { saltedDigest } from '#kernel/record/chain'
import type { RunLimits } from '#kernel/reducer/commands'
import { rebuildRequest } from '../projection/rebuild-request.ts'
import { renderRequest } from '../projection/render-request.ts'
import { requestDigest } from '../projection/request-digest.ts'
import { assemble } from '../prompt/assemble.ts'
import type { Assembly } from '../prompt/assemble.ts'
import type { ContinuationMessage, ConversationMessage, CountTokens, PromptReadings } from '../prompt/entity.ts'
import { personaEntities } from '../prompt/persona-entities.ts'
import { ContextOverflowError } from '../prompt/prompt-errors.ts'
import { citationEntities, memoryEntities } from '../prompt/recall-entities.ts'
import type { ContextSources, PromptPlace, RecallAnswer, SourceNode } from './context-sources.ts'
import { DerivedCache } from './derived-cache.ts'
import { foldAnswer } from './fold-answer.ts'
import { loadedNode, loadedText } from './load-references.ts'
import type { Continuation, ContextProjector, PendingContent, ReadyRequest, RefusedRequest, RunPin } from './ports.ts'

/** What the instance's model is and allows. Tokens. */
export type ModelChoice = { model: string; windowTokens: number; replyTokens: number; tokenizerId: string; countTokens: CountTokens }

/** The platform's limits for an answer (K6); profiles may only lower them. */
export const ANSWER_LIMITS: RunLimits = { max_turns: 8, max_wall_ms: 10 * 60_000, max_tokens: null, max_tries: 3, max_steers: 16 }

/** Version of what is built in: gates, layouts, prompts; pinned with each run (decision 21). */
export const BUNDLE = 'lingtai/builtin/1'

const temperatures: Record<string, number> = { low: 0.4, medium: 0.8, high: 1.1 }

export type ProjectorDeps = {
  sources: ContextSources
  contents: ContentStore
  clock: Clock
  ids: Ids
  model: ModelChoice
  /** Keys and tokens of this instance, which no request may hold. */
  secrets(): readonly string[]
  /** Stores the resolved profile and answers its version and hash. */
  profile(ownerId: string, profile: Record<string, string | number | null>): Promise<{ versionId: string; hash: string }>
}

/** Contents loaded for a request, those still to be stored, and where each derived text of the assembly stands. */
type StoredTexts = { loaded: Map<string, StoredContent>; pending: PendingContent[]; derived: { contentId: string; digest: string }[] }

type RequestInput = {
  run: RunRow
  turn: number
  assembly: Assembly
  stored: StoredTexts
  nodes: readonly SourceNode[]
  readings: PromptReadings
  place: PromptPlace
  recalled: RecallAnswer
}

/** `ProjectContext`, step 4 and 5 of a turn: sources → entities → assembly → record → assertion (spec/1, spec/3, M6, M10). */
export class RunContextProjector implements ContextProjector {
  readonly #deps: ProjectorDeps
  readonly #derived = new DerivedCache()

  constructor(deps: ProjectorDeps) {
    this.#deps = deps
  }

  async pin(run: RunRow): Promise<RunPin> {
    const { sources, model, profile } = this.#deps
    const personaVersionId = await sources.currentPersona(run)
    const resolved = await profile(run.owner_id, {
      bundle: BUNDLE,
      model: model.model,
      window_tokens: model.windowTokens,
      reply_tokens: model.replyTokens,
      ...ANSWER_LIMITS,
    })
    return { personaVersionId, profileVersionId: resolved.versionId, profileHash: resolved.hash, bundle: BUNDLE, limits: ANSWER_LIMITS }
  }

  countTokens(text: string): number {
    return this.#deps.model.countTokens(text)
  }

  async project(input: { run: RunRow; pin: RunPin; turn: number; continuation: Continuation }): Promise<ReadyRequest | RefusedRequest> {
    const { run, pin, turn } = input
    const { sources, model, clock } = this.#deps
    if (run.question_id === null) throw new Error(`run ${run.id} answers nothing`)
    const place = await sources.place(run, pin.personaVersionId)
    const nodes = await sources.conversation(run, run.question_id, model.windowTokens)
    const readings = this.#readings(run, place, clock.now())
    const cited = await this.#cited(run.question_id)
    const recalled = await sources.recall({ run, realmId: place.realm.id, queries: queriesOf(nodes) })

    const persona = personaEntities({ persona: place.persona, user: place.user, readings, chatKey: place.treeId })
    let assembly: Assembly
    try {
      assembly = assemble({
        entities: [...persona.entities, ...memoryEntities(recalled.memories), ...citationEntities(cited.passages)],
        examples: persona.examples,
        conversation: nodes.map(conversationMessage),
        continuation: continuationMessages(run, input.continuation),
        window: model.windowTokens,
        reserve: model.replyTokens,
        toolTokens: 0,
        countTokens: model.countTokens,
        readings,
        chatKey: place.treeId,
        values: persona.values,
      })
    } catch (error) {
      if (error instanceof ContextOverflowError) return refused('context_overflow', null)
      throw error
    }
    const stored = await this.#storedTexts(run, assembly, cited.contents, recalled.facts)
    return this.#request({ run, turn, assembly, stored, nodes, readings, place, recalled })
  }

  #readings(run: RunRow, place: PromptPlace, now: Date): PromptReadings {
    return {
      now: now.toISOString(),
      zone: toSlug(place.zone),
      utcOffsetMinutes: this.#deps.sources.utcOffsetMinutes(place.zone, now),
      seed: run.settings.seed,
    }
  }

  async #cited(questionId: string) {
    const citations = await this.#deps.sources.citations(questionId)
    const contents = await this.#deps.contents.get(citations.map((citation) => citation.contentId))
    const passages = citations.flatMap((citation) => {
      const content = contents.get(citation.contentId)
      const text = content ? loadedText(content) : 'erased'
      if (text === 'erased') return []
      const contentRef = { content_id: citation.contentId, digest: text.digest }
      return [{ citationId: citation.citationId, text: text.text, contentRef, trust: citation.trust }]
    })
    return { passages, contents }
  }

  /** Every text that is sent and is no node's: already stored, remembered as stored, or to be stored with the projection. */
  async #storedTexts(
    run: RunRow,
    assembly: Assembly,
    cited: Map<string, StoredContent>,
    recalled: readonly { contentId: string }[],
  ): Promise<StoredTexts> {
    const { contents, ids } = this.#deps
    const remembered = assembly.derived.map((text) => this.#derived.find(run.owner_id, text.text, text.derivedFrom))
    const referenced = assembly.pieces.flatMap((piece) => (piece.kind === 'content' && 'content_id' in piece.ref ? [piece.ref.content_id] : []))
    const loaded = await contents.get([
      ...remembered.flatMap((entry) => entry?.contentId ?? []),
      ...referenced,
      ...recalled.map((fact) => fact.contentId),
    ])
    for (const [id, content] of cited) loaded.set(id, content)
    const pending: PendingContent[] = []
    const derived = assembly.derived.map((text, index) => {
      const known = remembered[index]
      const content = known ? loaded.get(known.contentId) : undefined
      if (known && content && !content.erased) return known
      if (known) this.#derived.forget(run.owner_id, text.text, text.derivedFrom)
      const salt = ids.bytes(32)
      const entry = { contentId: ids.next(), digest: hex(saltedDigest(salt, text.text)) }
      pending.push({ id: entry.contentId, owner_id: run.owner_id, media_type: 'text/plain', content: text.text, salt, derived_from: text.derivedFrom })
      return entry
    })
    return { loaded, pending, derived }
  }

  #request(input: RequestInput): ReadyRequest | RefusedRequest {
    const { run, turn, assembly, stored, readings, recalled } = input
    const { model, ids, secrets } = this.#deps
    const frame = this.#frame(run, turn)
    const frameSalt = ids.bytes(32)
    const framePending: PendingContent = { id: ids.next(), owner_id: run.owner_id, media_type: 'application/json', content: frame, salt: frameSalt }
    const pieces = assembly.pieces.map((piece) => {
      if (piece.kind === 'path') return piece
      const ref = 'derived' in piece.ref ? stored.derived[piece.ref.derived] : { contentId: piece.ref.content_id, digest: piece.ref.digest }
      if (!ref) throw new Error('a derived text was not stored')
      return { kind: 'content' as const, role: piece.role, content_id: ref.contentId, digest: ref.digest }
    })
    const projection: EventPayload<'context.projected'> = {
      turn,
      layout_version: assembly.layoutVersion,
      frame_content_id: framePending.id,
      frame_digest: hex(saltedDigest(frameSalt, frame)),
      pieces,
      entities: assembly.entities.map(({ recorded, derived }) => ({
        ...recorded,
        content_id: derived === null ? recorded.content_id : (stored.derived[derived]?.contentId ?? null),
      })),
      dropped: assembly.dropped,
      tokens: assembly.tokens,
      tokenizer: toSlug(model.tokenizerId),
      trust: assembly.trust,
      readings: { now: readings.now, zone: readings.zone, utc_offset_minutes: readings.utcOffsetMinutes, seed: readings.seed },
      recall_audit_id: recalled.auditId,
    }
    const contents = [...stored.pending, framePending]
    const bodyText = renderRequest({ frame, messages: assembly.messages, layoutVersion: assembly.layoutVersion })

    const judgement = judgeRequest({
      owner: run.owner_id,
      run: { kind: run.kind, writes: ['conversation'] },
      treeRealm: input.place.realm.kind,
      references: this.#facts(input),
      bodyText,
      secrets: secrets(),
    })
    if (judgement.verdict === 'forbidden') return refused('forbidden', judgement.rule)

    const rebuilt = rebuildRequest(projection, this.#loader(input.nodes, stored.loaded, contents))
    if (rebuilt.result !== 'rebuilt' || rebuilt.bodyText !== bodyText) return refused('rebuild_mismatch', null)

    assembly.derived.forEach((text, index) => {
      const entry = stored.derived[index]
      if (entry) this.#derived.remember(run.owner_id, text.text, text.derivedFrom, entry)
    })
    return {
      command: {
        tag: 'context_projected',
        projection,
        content_digests: contentDigests(projection),
        effect_id: ids.next(),
        request_digest: requestDigest(projection),
        model: toSlug(model.model),
        reserved_tokens: assembly.tokens.used + model.replyTokens,
        policy_version: FORBIDDEN_POLICY_VERSION,
      },
      contents,
      body: JSON.parse(bodyText) as ChatRequestBody,
      bodyText,
      promptTokens: assembly.tokens.used,
    }
  }

  /** The request without its messages. A seed of its own per run and turn, so that a regenerated answer is another one. */
  #frame(run: RunRow, turn: number): string {
    const { model } = this.#deps
    const temperature = run.settings.effort === undefined ? undefined : temperatures[run.settings.effort]
    return JSON.stringify({
      model: model.model,
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: model.replyTokens,
      seed: (run.settings.seed + turn) % 2 ** 31,
      ...(temperature === undefined ? {} : { temperature }),
    })
  }

  #facts({ nodes, stored, recalled, place, run }: RequestInput): ReferenceFacts[] {
    const recalledIds = new Set(recalled.facts.map((fact) => fact.contentId))
    return [
      ...nodes.map((node): ReferenceFacts => ({ owner: node.owner_id, source: 'conversation', realm: null, tombstoned: false })),
      ...recalled.facts.map((fact): ReferenceFacts => ({ owner: fact.ownerId, source: 'memory', realm: fact.realm, tombstoned: fact.tombstoned })),
      ...[...stored.loaded.values()]
        .filter((content) => !recalledIds.has(content.id))
        .map((content): ReferenceFacts => ({ owner: content.owner_id, source: 'persona_anchor', realm: place.realm.kind, tombstoned: content.erased })),
      { owner: run.owner_id, source: 'owner_instruction', realm: null, tombstoned: false },
    ]
  }

  #loader(nodes: readonly SourceNode[], loaded: Map<string, StoredContent>, pending: readonly PendingContent[]) {
    const waiting = new Map(pending.map((content) => [content.id, content]))
    const position = new Map(nodes.map((node, index) => [node.node_id, index]))
    return {
      content: (id: string) => {
        const fresh = waiting.get(id)
        if (fresh && typeof fresh.content === 'string') return { text: fresh.content, digest: hex(saltedDigest(fresh.salt, fresh.content)) }
        const content = loaded.get(id)
        return content === undefined ? undefined : loadedText(content)
      },
      path: (range: { from_node_id: string; to_node_id: string }) => {
        const from = position.get(range.from_node_id)
        const to = position.get(range.to_node_id)
        return from === undefined || to === undefined ? undefined : nodes.slice(from, to + 1).map(loadedNode)
      },
    }
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function refused(code: RefusedRequest['command']['code'], rule: RefusedRequest['command']['rule']): RefusedRequest {
  return { command: { tag: 'context_refused', code, rule, policy_version: FORBIDDEN_POLICY_VERSION } }
}

function conversationMessage(node: SourceNode): ConversationMessage {
  const { node_id, parent_id, role, parts, content_id, digest, trust, partial } = node
  return { node_id, parent_id, role, parts: node.deleted ? [] : parts, content_id, digest, trust, partial }
}

/** What this run already said goes on as the character's words, what was interjected as the user's. */
function continuationMessages(run: RunRow, continuation: Continuation): ContinuationMessage[] {
  if (continuation.segments.length === 0 && continuation.steers.length === 0) return []
  const folded = foldAnswer(continuation.segments, continuation.steers)
  let steer = 0
  return folded.layout.parts.flatMap((part): ContinuationMessage[] => {
    const text = folded.body.slice(part.from, part.to)
    if (part.kind === 'reasoning') return []
    // The answer's content will have the candidate's id, so that erasing it erases this copy too (decision 13).
    if (part.kind !== 'steer') {
      return [{ kind: 'said', text, contentRef: null, derivedFrom: run.candidate_id === null ? [] : [run.candidate_id], trust: continuation.trust }]
    }
    const source = continuation.steers[steer++]
    const contentRef = source ? { content_id: source.content_id, digest: source.digest } : null
    return [{ kind: 'steer', text, contentRef, derivedFrom: [], trust: 'trusted' }]
  })
}

/** Recall asks with the last message and with the dialogue before it, since each finds what the other does not (spec/5). */
function queriesOf(nodes: readonly SourceNode[]): { question: string; dialogue: string } {
  const texts = nodes.filter((node) => !node.deleted).map((node) => node.parts.filter((part) => part.kind === 'text').map((part) => part.text).join('\n'))
  return { question: texts.at(-1) ?? '', dialogue: texts.slice(-5, -1).join('\n') }
}

function contentDigests(projection: EventPayload<'context.projected'>): ContentDigest[] {
  return [
    { content_id: projection.frame_content_id, digest: projection.frame_digest },
    ...projection.pieces.flatMap((piece) => (piece.kind === 'content' ? [{ content_id: piece.content_id, digest: piece.digest }] : [])),
  ]
}
