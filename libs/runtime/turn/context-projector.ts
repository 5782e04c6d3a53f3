import { toSlug } from '#contracts'
import { PROTOCOL_VERSION } from '#contracts'
import type { BundleContent, Trust } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { ChatTool } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import type { RunLimits } from '#kernel/reducer/commands'
import { REDUCER_VERSION } from '#kernel/reducer/state'
import { CURRENT_LAYOUT } from '../projection/layouts.ts'
import { assemble } from '../prompt/assemble.ts'
import type { Assembly } from '../prompt/assemble.ts'
import type { ConversationMessage, PromptReadings } from '../prompt/entity.ts'
import { personaEntities } from '../prompt/persona-entities.ts'
import { ContextOverflowError } from '../prompt/prompt-errors.ts'
import { citationEntities, memoryEntities } from '../prompt/recall-entities.ts'
import type { ContextSources, PromptPlace, RecallQueries, SourceNode } from './context-sources.ts'
import { continuationMessages } from './continuation.ts'
import { loadedText } from './load-references.ts'
import type { ContextProjector, ProjectedRequest, ProjectInput, RunPin } from './ports.ts'
import { shownName } from './granted-tools.ts'
import { costMicros, refused, streamedFrame } from './request-builder.ts'
import type { ModelChoice, RequestBuilder } from './request-builder.ts'

/** What this release brings: active until an admin moves the pointer (K8). */
export const RELEASE_BUNDLE: BundleContent = {
  name: 'lingtai/builtin/1',
  protocol_version: PROTOCOL_VERSION,
  layout_version: CURRENT_LAYOUT,
  reducer_version: REDUCER_VERSION,
  limits: {
    max_turns: 8,
    max_wall_ms: 10 * 60_000,
    max_tokens: null,
    max_consecutive_tool_errors: 6,
    max_tries: 3,
    max_steers: 16,
  },
  temperatures: { low: 0.4, medium: 0.8, high: 1.1 },
}

/** The platform's layer: what is active now, and what a run was pinned to (K8). */
export interface Bundles {
  active(): Promise<{ hash: string; content: BundleContent }>
  of(hash: string): Promise<BundleContent>
}

export type ProjectorDeps = {
  sources: ContextSources
  contents: ContentStore
  clock: Clock
  model: ModelChoice
  requests: RequestBuilder
  /** Stores the resolved profile and answers its version and hash. */
  profile(ownerId: string, profile: Record<string, string | number | null>): Promise<{ versionId: string; hash: string }>
  bundles: Bundles
  /** The least that any grant allows this run to cost, in micro-units; null where nobody bounds it. */
  costBound(run: RunRow): Promise<number | null>
}

/** `ProjectContext`, step 4 and 5 of a turn: sources → entities → assembly → record → assertion (spec/1, spec/3, M6, M10). */
export class RunContextProjector implements ContextProjector {
  readonly #deps: ProjectorDeps

  constructor(deps: ProjectorDeps) {
    this.#deps = deps
  }

  async pin(run: RunRow): Promise<RunPin> {
    const { sources, model, profile } = this.#deps
    const [personaVersionId, maxCostMicros, bundle] = await Promise.all([
      sources.currentPersona(run),
      this.#deps.costBound(run),
      this.#deps.bundles.active(),
    ])
    const limits: RunLimits = { ...bundle.content.limits, max_cost_micros: maxCostMicros }
    const resolved = await profile(run.owner_id, {
      bundle: bundle.hash,
      model: model.model,
      window_tokens: model.windowTokens,
      reply_tokens: model.replyTokens,
      ...limits,
    })
    return { personaVersionId, profileVersionId: resolved.versionId, profileHash: resolved.hash, bundle: bundle.hash, limits }
  }

  countTokens(text: string): number {
    return this.#deps.model.countTokens(text)
  }

  costMicros(tokens: { prompt: number; completion: number }): number {
    return costMicros(this.#deps.model.price, tokens) ?? 0
  }

  async project(input: ProjectInput): Promise<ProjectedRequest> {
    const { run, pin, turn } = input
    const tools = input.tools.map(shownTool)
    const { sources, model, clock } = this.#deps
    if (run.question_id === null || pin.personaVersionId === null) throw new Error(`run ${run.id} answers nothing`)
    const [bundle, place, nodes, cited] = await Promise.all([
      this.#deps.bundles.of(pin.bundle),
      sources.place(run, pin.personaVersionId),
      sources.conversation(run, run.question_id, model.windowTokens),
      this.#cited(run.question_id),
    ])
    const readings = this.#readings(run, place, clock.now())
    const recalled = await sources.recall({ run, realmId: place.realm.id, queries: queriesOf(nodes) })

    const persona = personaEntities({ persona: place.persona, user: place.user, readings, chatKey: place.treeId })
    let assembly: Assembly
    try {
      assembly = assemble({
        entities: [...persona.entities, ...memoryEntities(recalled.memories), ...citationEntities(cited.passages)],
        examples: persona.examples,
        conversation: nodes.map((node) => conversationMessage(node, place.persona.trust)),
        continuation: continuationMessages(run, input.continuation),
        window: model.windowTokens,
        reserve: model.replyTokens,
        toolTokens: tools.length === 0 ? 0 : model.countTokens(JSON.stringify(tools)),
        countTokens: model.countTokens,
        readings,
        chatKey: place.treeId,
        values: persona.values,
      })
    } catch (error) {
      if (error instanceof ContextOverflowError) return refused('context_overflow', null)
      throw error
    }
    return this.#deps.requests.build({
      run,
      turn,
      assembly,
      frame: this.#frame({ run, turn, asksUsage: input.asksUsage, tools, temperatures: bundle.temperatures }),
      readings,
      realmKind: place.realm.kind,
      writes: ['conversation'],
      purpose: 'answer',
      nodes,
      cited: cited.contents,
      recalled,
      guards: input.guards,
    })
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

  /** The request without its messages. A seed of its own per run and turn, so that a regenerated answer is another one. */
  #frame({
    run,
    turn,
    asksUsage,
    tools,
    temperatures,
  }: {
    run: RunRow
    turn: number
    asksUsage: boolean
    tools: readonly ChatTool[]
    temperatures: Readonly<Record<string, number>>
  }): string {
    const { model } = this.#deps
    const temperature = run.settings.effort === undefined ? undefined : temperatures[run.settings.effort]
    return JSON.stringify({
      ...streamedFrame(model.model, asksUsage),
      max_tokens: model.replyTokens,
      seed: (run.settings.seed + turn) % 2 ** 31,
      ...(temperature === undefined ? {} : { temperature }),
      ...(tools.length === 0 ? {} : { tools }),
    })
  }
}

/** A tool as the provider's protocol describes it. */
function shownTool({ name, description, parameters }: ToolContract): ChatTool {
  return { type: 'function', function: { name: shownName(name), description, parameters } }
}

function conversationMessage(node: SourceNode, cardTrust: Trust): ConversationMessage {
  const { node_id, parent_id, role, parts, content_id, digest, partial } = node
  const trust = node.isGreeting ? cardTrust : node.trust
  return { node_id, parent_id, role, parts: node.deleted ? [] : parts, content_id, digest, trust, partial }
}

/** Recall asks with the last message and with the dialogue before it, since each finds what the other does not (spec/5). */
function queriesOf(nodes: readonly SourceNode[]): RecallQueries {
  const asked = nodes.filter((node) => !node.deleted).slice(-5)
  const texts = asked.map((node) =>
    node.parts
      .filter((part) => part.kind === 'text')
      .map((part) => part.text)
      .join('\n'),
  )
  return {
    question: texts.at(-1) ?? '',
    dialogue: texts.slice(0, -1).join('\n'),
    contentIds: asked.flatMap((node) => node.content_id ?? []),
  }
}
