import { createOpenAiGateway } from '#model/openai-gateway'
import { startDemoModel } from '#model/demo/demo-model'
import { DEFAULT_RETRY_POLICY, retryDelayMs } from '#model/retry'
import { createTokenizers } from '#model/tokenizers'
import { EndpointQuirksRepository } from '#infra/prisma/endpoint-quirks.repository'
import type { ModelGateway } from '#kernel/ports/model-gateway'
import type { EndpointQuirks } from '#runtime/turn/ports'
import type { ModelChoice } from '#runtime/turn/request-builder'
import type { Foundation } from './foundation.ts'

export type Model = {
  gateway: ModelGateway
  quirks: EndpointQuirks
  choice: ModelChoice
  /** Keys and tokens of this instance: masked in what comes back, forbidden in what goes out (decision 37). */
  secrets(): readonly string[]
  retryDelay(failure: { retryable: boolean; retryAfterMs?: number; tries: number }): number | null
}

/** Tokens kept for the answer: an eighth of the window, within reason. */
function replyTokens(windowTokens: number): number {
  return Math.max(128, Math.min(2_048, Math.floor(windowTokens / 8)))
}

/** The only exit to a model: the configured endpoint, or the demo model as an endpoint inside this process. */
export async function composeModel({ config, database, lifecycle }: Foundation): Promise<Model> {
  const endpoint = config.model.endpoint ?? (await startDemo(lifecycle))
  const secrets = [config.model.endpoint?.apiKey, config.embedding?.endpoint.apiKey].flatMap((key) => key ?? [])
  const tokenizers = createTokenizers()
  const tokenizer = await tokenizers.forModel(config.model.name)
  const gateway = createOpenAiGateway({
    endpoint: { baseUrl: endpoint.baseUrl, ...(endpoint.apiKey === null ? {} : { apiKey: endpoint.apiKey }) },
    secrets,
    countTokens: (text) => tokenizer.count(text),
  })
  lifecycle.onClose('model', () => Promise.resolve(gateway.close()))
  return {
    gateway,
    quirks: config.model.demo ? noQuirks : new EndpointQuirksRepository(database, { baseUrl: endpoint.baseUrl, model: config.model.name }),
    choice: {
      model: config.model.name,
      windowTokens: config.model.windowTokens,
      replyTokens: replyTokens(config.model.windowTokens),
      tokenizerId: tokenizer.id,
      price: config.model.price,
      countTokens: (text, digest) => (digest === undefined ? tokenizer.count(text) : tokenizers.countContent(tokenizer, { text, digest })),
    },
    secrets: () => secrets,
    retryDelay: ({ retryable, retryAfterMs, tries }) =>
      retryDelayMs(DEFAULT_RETRY_POLICY, {
        tryNumber: tries,
        failure: { type: 'failed', code: 'provider_unavailable', retryable, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
        random: Math.random,
      }) ?? null,
  }
}

/** The demo model takes what we send: nothing is asked or kept about it. */
const noQuirks: EndpointQuirks = { takesStreamOptions: () => Promise.resolve(true), keep: () => Promise.resolve() }

async function startDemo(lifecycle: Foundation['lifecycle']): Promise<{ baseUrl: string; apiKey: null }> {
  const demo = await startDemoModel()
  lifecycle.onClose('demo model', () => demo.close())
  return { baseUrl: demo.baseUrl, apiKey: null }
}
