import type { Config } from '#infra/config/config'
import type { Embedder } from '#kernel/ports/embedder'
import { createLexicalEmbedder } from '#model/lexical-embedder'
import { createOpenAiEmbedder } from '#model/openai-embedder'
import type { Lifecycle } from './lifecycle.ts'

/** The configured embeddings endpoint, or the offline default, which is lexical and says so. */
export async function composeEmbedder(config: Config, lifecycle: Lifecycle): Promise<Embedder> {
  if (config.embedding === null) return createLexicalEmbedder()
  const { model, endpoint } = config.embedding
  const embedder = await createOpenAiEmbedder({
    model,
    endpoint: { baseUrl: endpoint.baseUrl, ...(endpoint.apiKey === null ? {} : { apiKey: endpoint.apiKey }) },
  })
  lifecycle.onClose('embedder', () => Promise.resolve(embedder.close()))
  return embedder
}
