import { EmbeddingError } from '../ports/embedder.ts'
import type { Embedder, EmbeddingCause, EmbeddingEndpoint, EmbeddingSpace } from '../ports/embedder.ts'
import { EmbeddingBroker } from './embedding-broker.ts'
import type { EmbeddingBrokerDeps } from './embedding-broker.ts'

/** What the endpoint's vectors are asked with. */
const PROBE_TEXT = 'dimensions'
/** The index's limit (decision 31). */
const DIMENSIONS_MAX = 4_000

const probe: EmbeddingCause = { purpose: 'probe', ownerId: null, characterId: null, runId: null }

/**
 * The embedder over a broker. Asks the endpoint how long its vectors are; where it does not answer, `knownDimensions` of the same model are
 * believed, and without them this rejects with EmbeddingError.
 */
export async function openRecordedEmbedder(
  endpoint: EmbeddingEndpoint,
  deps: EmbeddingBrokerDeps & { knownDimensions: number | null },
): Promise<Embedder> {
  const broker = new EmbeddingBroker(endpoint, deps)
  const space = spaceOf(endpoint.model, await dimensionsOf(broker, deps.knownDimensions))
  return {
    space,
    isDegenerate: (vector) => endpoint.isDegenerate(vector),
    embed: async (texts, cause, options) => {
      const vectors = await broker.embed(texts, cause, options)
      if (vectors.some((vector) => vector.length !== space.dimensions)) {
        throw new EmbeddingError({ outcome: 'unfit', code: 'dimensions_changed', retryable: false })
      }
      return vectors
    },
  }
}

async function dimensionsOf(broker: EmbeddingBroker, known: number | null): Promise<number> {
  let found: number
  try {
    found = (await broker.embed([PROBE_TEXT], probe))[0]?.length ?? 0
  } catch (error) {
    if (known !== null && error instanceof EmbeddingError) return known
    throw error
  }
  if (found < 1 || found > DIMENSIONS_MAX) throw new EmbeddingError({ outcome: 'unfit', code: 'bad_dimensions', retryable: false })
  return found
}

function spaceOf(model: string, dimensions: number): EmbeddingSpace {
  const slug = model.replace(/[^A-Za-z0-9_.:/-]+/g, '-').slice(0, 48)
  return { id: `${slug}-${dimensions}`, model, version: 'v1', dimensions }
}
