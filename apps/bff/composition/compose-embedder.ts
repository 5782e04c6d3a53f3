import { hostname } from 'node:os'
import { ConfigError } from '#infra/config/config'
import { EmbeddingRequestRepository } from '#infra/prisma/embedding-request.repository'
import { settleLeftEmbeddings } from '#kernel/effects/embedding-record'
import { openRecordedEmbedder } from '#kernel/effects/recorded-embedder'
import { EmbeddingError } from '#kernel/ports/embedder'
import type { Embedder } from '#kernel/ports/embedder'
import { estimateTokens } from '#model/estimate-tokens'
import { createLexicalEmbedder } from '#model/lexical-embedder'
import { createOpenAiEmbeddingEndpoint } from '#model/openai-embedder'
import type { Foundation } from './foundation.ts'
import type { BackgroundWork } from './lifecycle.ts'

/** Requests whose sender died are looked for this often; they wait for nobody. */
const SWEEP_MS = 60_000

export type ComposedEmbedder = {
  embedder: Embedder
  /** What a run's embeddings were charged so far, in micro-units; 0 where they cost nothing (K6). */
  spentBy(runId: string): Promise<number>
}

/**
 * The configured embeddings endpoint, behind the effect broker, or the offline default, which is lexical and says so: it computes here, so
 * that nothing leaves and nothing is recorded. `knownDimensions`: of vectors that a model gave before.
 */
export async function composeEmbedder(
  foundation: Foundation,
  { knownDimensions }: { knownDimensions(model: string): Promise<number | null> },
): Promise<ComposedEmbedder> {
  const { config, database, log, clock, ids, lifecycle } = foundation
  const ledger = new EmbeddingRequestRepository(database)
  const holder = `${hostname().slice(0, 40)}:${process.pid}:${ids.next()}`
  // Also where the offline embedder is configured by now.
  lifecycle.addWork(settleLeft(foundation, ledger, holder))
  if (config.embedding === null) return { embedder: createLexicalEmbedder(), spentBy: () => Promise.resolve(0) }
  const { model, endpoint, priceMicros } = config.embedding
  const remote = createOpenAiEmbeddingEndpoint({
    model,
    endpoint: { baseUrl: endpoint.baseUrl, ...(endpoint.apiKey === null ? {} : { apiKey: endpoint.apiKey }) },
  })
  lifecycle.onClose('embedder', () => Promise.resolve(remote.close()))
  const opening = openRecordedEmbedder(remote, {
    unitOfWork: database,
    log,
    ledger,
    clock,
    ids,
    holder,
    countTokens: estimateTokens,
    priceMicros,
    knownDimensions: await knownDimensions(model),
  })
  const embedder = await opening.catch((error: unknown) => {
    if (!(error instanceof EmbeddingError)) throw error
    const { outcome, code } = error
    throw new ConfigError([
      {
        variable: 'LINGTAI_EMBEDDING_MODEL',
        fault:
          `${endpoint.baseUrl} gave no vectors of ${model} (${outcome}: ${code}), and a first start has to learn how long they are; ` +
          'make the model answer there, or leave the variable out to remember without an embedding model',
      },
    ])
  })
  return { embedder, spentBy: (runId) => (priceMicros === null ? Promise.resolve(0) : ledger.spentBy(runId)) }
}

function settleLeft(
  { database, log, clock, config, scheduler, logger, lifecycle }: Foundation,
  ledger: EmbeddingRequestRepository,
  holder: string,
): BackgroundWork {
  const report = (error: unknown, effect?: string): void => logger.error({ err: error, effect }, 'an embedding request was not settled')
  const aliveHolder = config.tier === 'light' ? holder : null
  return {
    name: 'embedding requests',
    role: 'any',
    start: async () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      const round = async (): Promise<void> => {
        try {
          await settleLeftEmbeddings({ unitOfWork: database, log, ledger, clock, report }, { aliveHolder })
        } catch (error) {
          report(error)
        }
        if (lifecycle.stopping.aborted) return
        cancel = scheduler.after(SWEEP_MS, () => {
          running = round()
        })
      }
      await round()
      return async () => {
        cancel()
        await running
      }
    },
  }
}
