import { z } from 'zod'
import { embedText } from '../lexical-embedder.ts'
import { estimateTokens } from '../estimate-tokens.ts'
import { RequestProblem } from './request-problem.ts'

const EmbeddingsBody = z.object({
  model: z.string().default('lexical-1024-v1'),
  input: z.union([z.string(), z.array(z.string()).min(1).max(2_048)]),
  encoding_format: z.enum(['float', 'base64']).default('float'),
})

/** `/v1/embeddings` over the lexical embedder. Throws RequestProblem. */
export const answerEmbeddings = (body: unknown): unknown => {
  const parsed = EmbeddingsBody.safeParse(body)
  if (!parsed.success) throw new RequestProblem(400, 'invalid_body', z.prettifyError(parsed.error))
  const { model, input, encoding_format: format } = parsed.data
  const texts = typeof input === 'string' ? [input] : input
  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text), 0)
  const data = texts.map((text, index) => {
    const vector = embedText(text)
    const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)
    return { object: 'embedding', index, embedding: format === 'base64' ? bytes.toString('base64') : Array.from(vector) }
  })
  return { object: 'list', model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}
