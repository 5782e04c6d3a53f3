import type { CapabilitySet } from '#contracts'
import type { AttemptKeeper } from '#domains/tasks/attempt-keeper'
import type { RuntimeAdapter } from '#domains/tasks/attempt-starts'
import type { CompletionService } from '#domains/tasks/completion.service'
import type { TaskDeps } from '#domains/tasks/deps'
import { LoopedAttempts } from '#domains/tasks/looped-attempts'
import { EndpointQuirksRepository } from '#infra/prisma/endpoint-quirks.repository'
import type { AttemptRow } from '#kernel/ports/task-store'
import { createOpenAiGateway } from '#model/openai-gateway'
import { createTokenizers } from '#model/tokenizers'
import type { Bundles } from '#runtime/turn/context-projector'
import { DelegatedRuns } from '#runtime/turn/delegated-runs'
import type { ModelChoice } from '#runtime/turn/request-builder'
import type { Conversation } from './compose-conversation.ts'
import type { Memory } from './compose-memory.ts'
import type { Model } from './compose-model.ts'
import type { Foundation } from './foundation.ts'

/** Whoever submits actions through the API: what it does with what it learns there, nobody here knows. */
const external: CapabilitySet = {
  structured_events: 'yes',
  pause_for_approval: 'yes',
  resume: 'checkpoint',
  cancel: 'cooperative',
  artifact_export: ['text/plain', 'text/markdown', 'application/json'],
  workspace_isolation: 'unknown',
  raw_event_provenance: 'unknown',
}

/** The loop in this process: every step is an event, and it has no workspace but its record. */
const builtin: CapabilitySet = {
  structured_events: 'yes',
  pause_for_approval: 'yes',
  resume: 'checkpoint',
  cancel: 'cooperative',
  artifact_export: ['text/plain', 'text/markdown', 'application/json'],
  workspace_isolation: 'local',
  raw_event_provenance: 'yes',
}

/** An agent behind one OpenAI-compatible call: what it does before it answers, it does not show. */
const remote: CapabilitySet = {
  structured_events: 'no',
  pause_for_approval: 'no',
  resume: 'none',
  cancel: 'cooperative',
  artifact_export: ['text/plain', 'text/markdown', 'application/json'],
  workspace_isolation: 'provider',
  raw_event_provenance: 'no',
}

export type Runtimes = {
  adapters: readonly RuntimeAdapter[]
  schedule(attempt: AttemptRow): Promise<void>
  connect(parts: { keeper: AttemptKeeper; completion: CompletionService }): LoopedAttempts
}

/** Topic of the job that begins an attempt. */
const BEGIN = 'task.attempt'

/** Turns that a delegated run may take: more than an answer's, since nobody waits for it. */
const TURNS = 24

/** Who can carry attempts out (`003…` §5). `take`: an attempt's run may be there to be taken. */
export async function composeRuntimes(
  foundation: Foundation,
  parts: {
    deps: TaskDeps
    conversation: Conversation
    model: Model
    memory: Pick<Memory, 'jobs' | 'handle' | 'closeJob'>
    bundles: Pick<Bundles, 'active'>
    take: (attempt: AttemptRow) => void
  },
): Promise<Runtimes> {
  const { deps, conversation, model, memory, bundles, take } = parts
  const { host, requests, holder } = conversation
  const own = { host, requests, holder: `${holder}:tasks` }
  const agent = await composeAgent(foundation)
  const runners = {
    builtin: new DelegatedRuns({ ...own, model: model.choice }),
    ...(agent
      ? { remote: new DelegatedRuns({ ...own, host: { ...host, gateway: agent.gateway, quirks: agent.quirks }, model: agent.choice }) }
      : {}),
  }
  memory.handle(BEGIN, async (row) => {
    // The run itself is what waits, and outlives this row: here it is only looked at once, soon.
    const attempt = await deps.store.attempt(row.payload['attempt_id'] ?? '')
    if (attempt) take(attempt)
    await memory.closeJob(row.id)
  })
  return {
    adapters: [
      { runtime: 'external', version: '1', available: true, capabilities: external, profile: {} },
      { runtime: 'builtin', version: '1', available: true, capabilities: builtin, profile: profileOf(model.choice) },
      { runtime: 'remote', version: '1', available: agent !== null, capabilities: remote, profile: agent ? profileOf(agent.choice) : {} },
    ],
    schedule: (attempt) => memory.jobs.add({ topic: BEGIN, ownerId: attempt.owner_id, payload: { attempt_id: attempt.id } }),
    connect: ({ keeper, completion }) =>
      new LoopedAttempts({
        deps,
        keeper,
        completion,
        runners,
        limits: async () => {
          const { hash, content } = await bundles.active()
          return { bundle: hash, limits: { ...content.limits, max_turns: TURNS } }
        },
      }),
  }
}

function profileOf({ model, windowTokens, replyTokens }: ModelChoice): RuntimeAdapter['profile'] {
  return { model, window_tokens: windowTokens, reply_tokens: replyTokens }
}

/** The agent elsewhere, where the operator named one. */
async function composeAgent({ config, database, lifecycle }: Foundation) {
  const { agent } = config
  if (agent === null) return null
  const tokenizers = createTokenizers()
  const tokenizer = await tokenizers.forModel(agent.name)
  const { baseUrl, apiKey } = agent.endpoint
  const gateway = createOpenAiGateway({
    endpoint: { baseUrl, ...(apiKey === null ? {} : { apiKey }) },
    secrets: [config.model.endpoint?.apiKey, config.embedding?.endpoint.apiKey].flatMap((key) => key ?? []),
    countTokens: (text) => tokenizer.count(text),
  })
  lifecycle.onClose('agent', () => Promise.resolve(gateway.close()))
  const choice: ModelChoice = {
    model: agent.name,
    windowTokens: config.model.windowTokens,
    replyTokens: Math.max(128, Math.min(2_048, Math.floor(config.model.windowTokens / 8))),
    tokenizerId: tokenizer.id,
    // What an agent elsewhere charges for one answer, its tokens do not tell: no bound on cost can be promised with it.
    price: null,
    countTokens: (text, digest) => (digest === undefined ? tokenizer.count(text) : tokenizers.countContent(tokenizer, { text, digest })),
  }
  return { gateway, choice, quirks: new EndpointQuirksRepository(database, { baseUrl, model: agent.name }) }
}
