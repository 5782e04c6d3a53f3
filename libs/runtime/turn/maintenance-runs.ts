import { toSlug } from '#contracts'
import type { ModelPurpose, Trust } from '#contracts'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import { EMPTY_HEAD } from '#kernel/record/chain'
import type { RunLimits } from '#kernel/reducer/commands'
import { assemble } from '../prompt/assemble.ts'
import type { PromptEntity, PromptReadings } from '../prompt/entity.ts'
import { ContextOverflowError } from '../prompt/prompt-errors.ts'
import type { Bundles } from './context-projector.ts'
import { keepAlive } from './keep-alive.ts'
import type { ContextProjector, ProjectedRequest, RunPin } from './ports.ts'
import { costMicros, refused, streamedFrame } from './request-builder.ts'
import type { ModelChoice, RequestBuilder } from './request-builder.ts'
import type { RunHostDeps } from './run-deps.ts'
import { RunHost } from './run-host.ts'

/** A maintenance run has one turn and a fixed budget (spec/2 "Events"). */
export const MAINTENANCE_LIMITS: RunLimits = {
  max_turns: 1,
  max_wall_ms: 3 * 60_000,
  max_tokens: null,
  max_cost_micros: null,
  max_consecutive_tool_errors: 1,
  max_tries: 3,
  max_steers: 0,
}

/** A run that its job never claimed, since the process died in between, ends after this. */
const UNCLAIMED_MS = 60_000

/** One model call of a job: what it is told, and from which contents that was made. */
export type MaintenanceRequest = {
  ownerId: string
  characterId: string
  purpose: Exclude<ModelPurpose, 'answer'>
  /** In order; the instance's own instructions are the system's. */
  messages: readonly { role: 'system' | 'user' | 'assistant'; content: string }[]
  responseFormat: { name: string; schema: JsonObject }
  derivedFrom: readonly string[]
  trust: Trust
  /** Tokens kept for the answer. */
  replyTokens: number
  /** Called in the transaction that requests the run: how much it may cost at most, or null for no bound. A throw begins nothing. */
  reserve?: (runId: string) => Promise<number | null>
  /** The process stops: the run is left where it stands. */
  signal?: AbortSignal
}

/** The run ended without an answer; `code` is its reason, for the record and the next attempt. */
export class MaintenanceFailedError extends Error {
  readonly runId: string
  readonly code: string

  constructor(runId: string, code: string) {
    super(`maintenance run ${runId} ended without an answer: ${code}`)
    this.name = 'MaintenanceFailedError'
    this.runId = runId
    this.code = code
  }
}

export type MaintenanceDeps = {
  host: RunHostDeps
  requests: RequestBuilder
  model: ModelChoice
  /** Shares the boot's name, so that a dead boot's runs are known. */
  holder: string
  profile(ownerId: string, profile: Record<string, string | number | null>): Promise<{ versionId: string; hash: string }>
  bundles: Pick<Bundles, 'active'>
}

/**
 * Model calls of jobs as runs of their own: own stream and fence, recorded context, the same assertion and gate as an answer's, no seat and
 * no place in a tree (spec/2 "Events", M10).
 */
export class MaintenanceRuns {
  readonly #deps: MaintenanceDeps

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps
  }

  /**
   * Asks the model once; the answer's content goes with any that the request was made from. Throws MaintenanceFailedError, or why the signal was
   * aborted before anything began.
   */
  async ask(request: MaintenanceRequest): Promise<{ text: string; runId: string; contentId: string }> {
    const { host: deps, holder } = this.#deps
    request.signal?.throwIfAborted()
    const run = await this.#request(request)
    const claimed = await deps.runs.claimUnseated(run.runId, holder)
    if (!claimed) throw new MaintenanceFailedError(run.runId, 'not_claimed')
    const host = new RunHost({
      run: claimed,
      head: run.head,
      lastPublicSeq: 1,
      deps: { ...deps, projector: this.#projector(request, run.maxCostMicros) },
    })
    const stop = keepAlive(host, deps)
    const drain = (): void => host.drain()
    request.signal?.addEventListener('abort', drain)
    if (request.signal?.aborted) drain()
    try {
      await host.drive()
    } finally {
      request.signal?.removeEventListener('abort', drain)
      stop()
    }
    const ended = await deps.runs.get(run.runId)
    const content = claimed.candidate_id === null ? undefined : (await deps.contents.get([claimed.candidate_id])).get(claimed.candidate_id)
    if (ended?.state !== 'finished' || !content || content.body === null) {
      throw new MaintenanceFailedError(run.runId, ended?.reason ?? ended?.state ?? 'gone')
    }
    return { text: textOf(content.body, content.layout?.parts ?? []), runId: run.runId, contentId: content.id }
  }

  async #request({ ownerId, characterId, reserve }: MaintenanceRequest) {
    const { unitOfWork, runs, log, ids, clock } = this.#deps.host
    const runId = ids.next()
    const resultId = ids.next()
    const traceId = ids.next()
    return unitOfWork.run(async () => {
      await runs.insert({
        id: runId,
        owner_id: ownerId,
        kind: 'maintenance',
        seated: false,
        character_id: characterId,
        tree_id: null,
        question_id: null,
        candidate_id: resultId,
        trace_id: traceId,
        settings: { seed: ids.seed() },
        queueExpiresAt: new Date(clock.now().getTime() + UNCLAIMED_MS),
      })
      const maxCostMicros = reserve ? await reserve(runId) : null
      const [requested] = await log.append({
        stream: `run:${runId}`,
        ownerId,
        events: [
          {
            type: 'run.requested',
            payload: { kind: 'maintenance', tree_id: null, question_id: null, candidate_id: resultId, parent_run_id: null, ticket: null },
            run_id: runId,
            character_id: characterId,
            trace_id: traceId,
            actor: 'job',
            at: clock.now().toISOString(),
            cause: { tag: 'job' },
          },
        ],
      })
      return { runId, maxCostMicros, head: requested ? { seq: requested.seq, hash: requested.hash } : EMPTY_HEAD }
    })
  }

  #projector(request: MaintenanceRequest, maxCostMicros: number | null): ContextProjector {
    const { model, profile, requests, host, bundles } = this.#deps
    return {
      countTokens: (text) => model.countTokens(text),
      costMicros: (tokens) => costMicros(model.price, tokens) ?? 0,
      pin: async (run): Promise<RunPin> => {
        const { hash: bundle } = await bundles.active()
        const resolved = await profile(run.owner_id, {
          bundle,
          model: model.model,
          purpose: request.purpose,
          ...MAINTENANCE_LIMITS,
        })
        return {
          personaVersionId: null,
          profileVersionId: resolved.versionId,
          profileHash: resolved.hash,
          bundle,
          limits: { ...MAINTENANCE_LIMITS, max_cost_micros: maxCostMicros },
        }
      },
      project: async ({ run, turn, asksUsage, guards }): Promise<ProjectedRequest> => {
        const readings: PromptReadings = { now: host.clock.now().toISOString(), zone: 'UTC', utcOffsetMinutes: 0, seed: run.settings.seed }
        try {
          return await requests.build({
            run,
            turn,
            assembly: assemble({
              entities: entitiesOf(request),
              conversation: [],
              window: model.windowTokens,
              reserve: request.replyTokens,
              toolTokens: 0,
              countTokens: model.countTokens,
              readings,
              chatKey: run.id,
              values: { char: nameless, user: nameless },
            }),
            frame: this.#frame(run, request, asksUsage),
            readings,
            realmKind: null,
            writes: ['memory'],
            purpose: request.purpose,
            nodes: [],
            cited: new Map(),
            recalled: { auditId: null, facts: [] },
            guards,
          })
        } catch (error) {
          if (error instanceof ContextOverflowError) return refused('context_overflow', null)
          throw error
        }
      },
    }
  }

  #frame(run: RunRow, { responseFormat, replyTokens }: MaintenanceRequest, asksUsage: boolean): string {
    return JSON.stringify({
      ...streamedFrame(this.#deps.model.model, asksUsage),
      max_tokens: replyTokens,
      temperature: 0,
      seed: run.settings.seed,
      response_format: { type: 'json_schema', json_schema: { name: toSlug(responseFormat.name), schema: responseFormat.schema } },
    })
  }
}

const nameless = { text: '', trust: 'trusted' as const, contentIds: [] }

/** Instructions are ours; everything else carries the trust of what it was made from. */
function entitiesOf(request: MaintenanceRequest): PromptEntity[] {
  return request.messages.map((message, index): PromptEntity => {
    const isOurs = message.role === 'system'
    return {
      identifier: `${request.purpose}.${index}`,
      role: message.role,
      source: isOurs ? 'system_contract' : 'conversation',
      position: { at: 'relative', rank: index },
      text: message.content,
      expand: false,
      sourceId: null,
      contentRef: null,
      derivedFrom: isOurs ? [] : request.derivedFrom,
      trust: isOurs ? 'trusted' : request.trust,
      priority: 1_000,
      forbidOverride: true,
      reason: request.purpose,
    }
  })
}

function textOf(body: string, parts: readonly { kind: string; from: number; to: number }[]): string {
  return parts
    .filter((part) => part.kind === 'text')
    .map((part) => body.slice(part.from, part.to))
    .join('')
}
