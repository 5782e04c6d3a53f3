import { toSlug } from '#contracts'
import type { EventPayload, ModelPurpose } from '#contracts'
import { FORBIDDEN_POLICY_VERSION, judgeRequest } from '#kernel/gate/forbidden-gate'
import type { ReferenceFacts, RunFacts } from '#kernel/gate/forbidden-gate'
import type { Ids } from '#kernel/ports/clock'
import type { ContentStore, StoredContent } from '#kernel/ports/content-store'
import type { ChatRequestBody } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import { saltedDigest } from '#kernel/record/chain'
import type { Guards } from '../bus/guards.ts'
import { projectedContents, projectedContext } from '../projection/projected-context.ts'
import { rebuildRequest } from '../projection/rebuild-request.ts'
import { renderRequest } from '../projection/render-request.ts'
import { requestDigest } from '../projection/request-digest.ts'
import type { Assembly } from '../prompt/assemble.ts'
import type { CountTokens, PromptReadings } from '../prompt/entity.ts'
import type { RecallAnswer, SourceNode } from './context-sources.ts'
import { DerivedCache } from './derived-cache.ts'
import { loadedNode, loadedText } from './load-references.ts'
import type { PendingContent, ProjectedRequest, RefusedRequest } from './ports.ts'
import { contentsShown, rewriteRequest } from './rewrite-request.ts'

/** What the instance's model is and allows. Tokens. */
export type ModelChoice = {
  model: string
  windowTokens: number
  replyTokens: number
  tokenizerId: string
  countTokens: CountTokens
  /** Micro-units per million tokens; null where nobody said, so that no bound on cost can be promised (K6). */
  price: { inputMicros: number; outputMicros: number } | null
}

/** What so many tokens are charged, rounded up; null without a price card. */
export function costMicros(price: ModelChoice['price'], tokens: { prompt: number; completion: number }): number | null {
  return price === null ? null : Math.ceil((tokens.prompt * price.inputMicros + tokens.completion * price.outputMicros) / 1_000_000)
}

export type RequestBuilderDeps = {
  contents: ContentStore
  ids: Ids
  model: ModelChoice
  /** Keys and tokens of this instance, which no request may hold. */
  secrets(): readonly string[]
  /** What the run's embeddings were charged so far, in micro-units: they count towards its bound on cost (K6). */
  embeddingMicros(runId: string): Promise<number>
}

/** Contents loaded for a request, those still to be stored, and where each derived text of the assembly stands. */
type StoredTexts = { loaded: Map<string, StoredContent>; pending: PendingContent[]; derived: { contentId: string; digest: string }[] }

/** How every frame begins. Where usage is not asked for, our tokenizer's upper bound stands in for it (decision 39). */
export function streamedFrame(model: string, asksUsage: boolean): Pick<ChatRequestBody, 'model' | 'stream' | 'stream_options'> {
  return { model, stream: true, ...(asksUsage ? { stream_options: { include_usage: true } } : {}) }
}

export type BuildInput = {
  run: RunRow
  turn: number
  assembly: Assembly
  /** The request body without its messages, as JSON text. */
  frame: string
  readings: PromptReadings
  realmKind: string | null
  writes: RunFacts['writes']
  purpose: ModelPurpose
  nodes: readonly SourceNode[]
  /** Contents that were loaded already. */
  cited: ReadonlyMap<string, StoredContent>
  recalled: Pick<RecallAnswer, 'auditId' | 'facts'>
  /** Who may rewrite the request or keep it back. */
  guards: Guards
}

/**
 * From an assembly to a request that may be sent: its texts stored or referenced, the projection recorded by reference, the listeners heard,
 * then the forbidden gate asked, and the whole rebuilt from the references and compared byte for byte (M8, M10). For every model call of every kind of run.
 */
export class RequestBuilder {
  readonly #deps: RequestBuilderDeps
  readonly #derived = new DerivedCache()

  constructor(deps: RequestBuilderDeps) {
    this.#deps = deps
  }

  async build(input: BuildInput): Promise<ProjectedRequest> {
    const stored = await this.#storedTexts(input)
    const request = await this.#request(input, stored)
    const embeddingMicros = await this.#deps.embeddingMicros(input.run.id)
    if (!('body' in request) || embeddingMicros === 0) return request
    return { ...request, command: { ...request.command, embedding_micros: embeddingMicros } }
  }

  /** Every text that is sent and is no node's: already stored, remembered as stored, or to be stored with the projection. */
  async #storedTexts({ run, assembly, cited, recalled }: BuildInput): Promise<StoredTexts> {
    const { contents, ids } = this.#deps
    const remembered = assembly.derived.map((text) => this.#derived.find(run.owner_id, text.text, text.derivedFrom))
    const referenced = assembly.pieces.flatMap((piece) =>
      piece.kind !== 'path' && 'content_id' in piece.ref ? [piece.ref.content_id] : [],
    )
    const loaded = await contents.get([
      ...remembered.flatMap((entry) => entry?.contentId ?? []),
      ...referenced,
      ...recalled.facts.map((fact) => fact.contentId),
    ])
    for (const [id, content] of cited) loaded.set(id, content)
    const pending: PendingContent[] = []
    const derived = assembly.derived.map((text, index) => {
      const known = remembered[index]
      const content = known ? loaded.get(known.contentId) : undefined
      if (known && content && !content.erased) return known
      if (known) {
        // It was erased meanwhile: this request does not refer to it.
        loaded.delete(known.contentId)
        this.#derived.forget(run.owner_id, text.text, text.derivedFrom)
      }
      const salt = ids.bytes(32)
      const entry = { contentId: ids.next(), digest: hex(saltedDigest(salt, text.text)) }
      pending.push({
        id: entry.contentId,
        owner_id: run.owner_id,
        media_type: 'text/plain',
        content: text.text,
        salt,
        derived_from: text.derivedFrom,
      })
      return entry
    })
    return { loaded, pending, derived }
  }

  /** The projection as it is recorded, and its frame as content. */
  #projected(input: BuildInput, stored: StoredTexts): { projection: EventPayload<'context.projected'>; frame: PendingContent } {
    const { run, turn, assembly, frame, readings, recalled } = input
    const { model, ids } = this.#deps
    const frameSalt = ids.bytes(32)
    const framePending: PendingContent = {
      id: ids.next(),
      owner_id: run.owner_id,
      media_type: 'application/json',
      content: frame,
      salt: frameSalt,
    }
    const projection = projectedContext({
      assembly,
      derived: stored.derived.map(({ contentId, digest }) => ({ content_id: contentId, digest })),
      frame: { content_id: framePending.id, digest: hex(saltedDigest(frameSalt, frame)) },
      turn,
      tokenizer: toSlug(model.tokenizerId),
      readings,
      recallAuditId: recalled.auditId,
    })
    return { projection, frame: framePending }
  }

  async #request(input: BuildInput, stored: StoredTexts): Promise<ProjectedRequest> {
    const { run, turn, purpose, assembly, frame, nodes, guards } = input
    const { model, ids, secrets } = this.#deps
    const projected = this.#projected(input, stored)
    const { projection } = projected
    const { messages, rewrites, used, veto, ...rewritten } = await rewriteRequest({
      run,
      guards,
      turn,
      purpose,
      projection,
      messages: assembly.messages,
      nodes,
      countTokens: model.countTokens,
      ids,
    })
    const contents = [...stored.pending, projected.frame, ...rewritten.contents]
    const recorded = { projection, content_digests: projectedContents(projection), ...(rewrites.length > 0 ? { rewrites } : {}) }
    if (veto) return { command: { tag: 'context_vetoed', ...recorded, veto }, contents }

    const bodyText = renderRequest({ frame, messages, layoutVersion: assembly.layoutVersion })
    const judgement = judgeRequest({
      owner: run.owner_id,
      run: { kind: run.kind, writes: input.writes },
      treeRealm: input.realmKind,
      references: factsOf(input, stored),
      bodyText,
      secrets: secrets(),
    })
    if (judgement.verdict === 'forbidden') return refused('forbidden', judgement.rule)

    const rebuilt = rebuildRequest(projection, this.#loader(nodes, stored.loaded, contents), rewrites)
    if (rebuilt.result !== 'rebuilt' || rebuilt.bodyText !== bodyText) return refused('rebuild_mismatch', null)

    assembly.derived.forEach((text, index) => {
      const entry = stored.derived[index]
      if (entry) this.#derived.remember(run.owner_id, text.text, text.derivedFrom, entry)
    })
    return {
      command: {
        tag: 'context_projected',
        ...recorded,
        effect_id: ids.next(),
        purpose,
        request_digest: requestDigest(
          projection,
          rewrites.map(({ digest }) => digest),
        ),
        model: toSlug(model.model),
        reserved_tokens: used + model.replyTokens,
        reserved_micros: costMicros(model.price, { prompt: used, completion: model.replyTokens }),
        policy_version: FORBIDDEN_POLICY_VERSION,
      },
      contents,
      body: JSON.parse(bodyText) as ChatRequestBody,
      bodyText,
      shown: [...contentsShown({ projection, nodes }), ...rewrites.map(({ patch_content_id: id }) => id)],
      promptTokens: used,
    }
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

/** The owner of a content that is not there: nobody's is foreign to everybody. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** What the gate reads of each reference: structure, never wording. */
function factsOf({ run, nodes, recalled, realmKind }: BuildInput, stored: StoredTexts): ReferenceFacts[] {
  const recalledIds = new Set(recalled.facts.map((fact) => fact.contentId))
  return [
    ...nodes.map((node): ReferenceFacts => ({ owner: node.owner_id, source: 'conversation', realm: null, tombstoned: false })),
    ...recalled.facts.map((fact): ReferenceFacts => {
      const content = stored.loaded.get(fact.contentId)
      return { owner: content?.owner_id ?? NOBODY, source: 'memory', realm: fact.realm, tombstoned: content?.erased ?? true }
    }),
    ...[...stored.loaded.values()]
      .filter((content) => !recalledIds.has(content.id))
      .map((content): ReferenceFacts => ({
        owner: content.owner_id,
        source: 'persona_anchor',
        realm: realmKind,
        tombstoned: content.erased,
      })),
    { owner: run.owner_id, source: 'owner_instruction', realm: null, tombstoned: false },
  ]
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

export function refused(code: RefusedRequest['command']['code'], rule: RefusedRequest['command']['rule']): RefusedRequest {
  return { command: { tag: 'context_refused', code, rule, policy_version: FORBIDDEN_POLICY_VERSION } }
}
