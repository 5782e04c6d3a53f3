import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { DedupeRequest, ExtractionRequest, ModelAnswerName, SummaryRequest } from '#contracts/memory-extraction'
import type { ChatMessage } from '#kernel/ports/model-gateway'
import { estimateTokens } from '../estimate-tokens.ts'
import { composeAnswer } from './compose-answer.ts'
import { decideDuplicates } from './dedupe.ts'
import { extractMemories } from './extract.ts'
import { piecesOf } from './pieces.ts'
import { RequestProblem } from './request-problem.ts'
import { summarise } from './summarise.ts'

/** What the page shows as the model's name. */
export const DEMO_MODEL_NAME = 'lingtai-demo'

const Text = z.union([z.string(), z.array(z.object({ type: z.string(), text: z.string().optional() }).loose())]).nullable()
const ChatBody = z.object({
  model: z.string().default(DEMO_MODEL_NAME),
  messages: z
    .array(z.object({ role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']), content: Text.optional() }).loose())
    .min(1),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().optional() }).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  seed: z.number().nullish(),
  temperature: z.number().nullish(),
  user: z.string().nullish(),
  response_format: z.object({ type: z.string(), json_schema: z.object({ name: z.string() }).optional() }).nullish(),
})
type ChatBody = z.infer<typeof ChatBody>

const textOf = (content: z.infer<typeof Text> | undefined): string =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('')

const messagesOf = (body: ChatBody): ChatMessage[] =>
  body.messages.map(({ role, content }) =>
    role === 'tool' ? { role, content: textOf(content), tool_call_id: '' } : { role, content: textOf(content) },
  )

/** The JSON text of a memory call's last user message, in its own format. Throws RequestProblem. */
const readPayload = <T>(schema: z.ZodType<T>, messages: readonly ChatMessage[]): T => {
  const text = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new RequestProblem(400, 'invalid_payload', 'The last user message is not the JSON that this response format works on')
  }
  const parsed = schema.safeParse(value)
  if (!parsed.success) throw new RequestProblem(400, 'invalid_payload', z.prettifyError(parsed.error))
  return parsed.data
}

const answerText = (body: ChatBody): string => {
  const messages = messagesOf(body)
  const name = ModelAnswerName.safeParse(body.response_format?.json_schema?.name).data
  switch (name) {
    case 'memory_extraction':
      return JSON.stringify(extractMemories(readPayload(ExtractionRequest, messages)))
    case 'memory_dedupe':
      return JSON.stringify(decideDuplicates(readPayload(DedupeRequest, messages)))
    case 'conversation_summary':
      return JSON.stringify(summarise(readPayload(SummaryRequest, messages)))
    case undefined:
      return composeAnswer(messages, JSON.stringify([body.seed ?? null, body.temperature ?? null, body.user ?? null]))
  }
}

/** As many pieces as the limit on tokens lets through. */
const withinLimit = (pieces: string[], limit: number | undefined): string[] => {
  if (limit === undefined) return pieces
  let count = 0
  let taken = 0
  // A piece is about a word; long ones count as several.
  while (taken < pieces.length && count + Math.ceil((pieces[taken]?.length ?? 0) / 8) <= limit)
    count += Math.ceil((pieces[taken++]?.length ?? 0) / 8)
  return pieces.slice(0, taken)
}

type Answering = { response: ServerResponse; sendJson: (value: unknown) => void; tokenDelayMs: number }

/** `/v1/chat/completions`, as a stream or whole. Throws RequestProblem before anything was sent; stops when the client leaves. */
export const answerChat = async (given: unknown, { response, sendJson, tokenDelayMs }: Answering): Promise<void> => {
  const parsed = ChatBody.safeParse(given)
  if (!parsed.success) throw new RequestProblem(400, 'invalid_body', z.prettifyError(parsed.error))
  const body = parsed.data
  const all = piecesOf(answerText(body))
  const pieces = withinLimit(all, body.max_completion_tokens ?? body.max_tokens ?? undefined)
  const finishReason = pieces.length < all.length ? 'length' : 'stop'
  const promptTokens = estimateTokens(body.messages.map(({ content }) => textOf(content)).join('\n'))
  const completionTokens = estimateTokens(pieces.join(''))
  const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens }
  const id = `chatcmpl-${createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 24)}`
  const head = { id, created: 0, model: body.model, system_fingerprint: DEMO_MODEL_NAME }

  if (body.stream !== true) {
    const message = { role: 'assistant', content: pieces.join('') }
    return sendJson({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finishReason }], usage })
  }

  const gone = new AbortController()
  response.on('close', () => gone.abort())
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const send = (choices: unknown[], extra: Record<string, unknown> = {}): void => {
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...extra })}\n\n`)
  }
  send([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])
  // A memory call's answer is nobody's reading: it comes at once.
  const delay = body.response_format?.json_schema === undefined ? tokenDelayMs : 0
  for (const content of delay === 0 && body.response_format?.json_schema !== undefined ? [pieces.join('')] : pieces) {
    if (delay > 0) {
      try {
        await wait(delay, undefined, { signal: gone.signal })
      } catch {
        // The client left; nobody reads the rest.
        return
      }
    }
    if (gone.signal.aborted) return
    send([{ index: 0, delta: { content }, finish_reason: null }])
  }
  send([{ index: 0, delta: {}, finish_reason: finishReason }])
  if (body.stream_options?.include_usage === true) send([], { usage })
  response.end('data: [DONE]\n\n')
}

export const listModels = (): unknown => ({
  object: 'list',
  data: [{ id: DEMO_MODEL_NAME, object: 'model', created: 0, owned_by: 'lingtai' }],
})

export { RequestProblem }
