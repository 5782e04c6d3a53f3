import type { IncomingMessage } from 'node:http'
import type { ModelInterruptionCode, ModelStreamEvent, ModelUsage } from '#kernel/ports/model-gateway'
import { CompletionReader } from './completion-reader.ts'
import { failureDetail, failureOfErrorObject, providerSlug, readProviderError, type ProviderError } from './provider-fault.ts'
import { createSseParser, type SseItem } from './sse-parser.ts'

export type StreamLimits = {
  firstByteTimeoutMs: number
  idleTimeoutMs: number
  finishGraceMs: number
  maxEventChars: number
  maxTotalChars: number
}

type ReadArguments = {
  message: IncomingMessage
  contentType: string
  limits: StreamLimits
  secrets: readonly string[]
  bodyText: string
  countTokens: (text: string) => number
  /** Closes the connection for a reason; the reading then ends. */
  stop: (code: ModelInterruptionCode) => void
  stopped: () => ModelInterruptionCode | undefined
}

/** What ended the reading without a finish_reason. */
type Ending = { code: ModelInterruptionCode; sample?: string; error?: ProviderError }

const DRAIN_MS = 1_000

/** Waits for the next bytes under a time limit that runs only while we wait, not while our consumer works. */
const timedChunks = (args: ReadArguments, isFinished: () => boolean) => {
  const iterator = (args.message as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  let waiting = false
  let sawBytes = false
  let graceIsOver = false
  const onTime = (): void => {
    if (!waiting) return
    if (isFinished()) {
      graceIsOver = true
      args.message.destroy()
    } else args.stop(sawBytes ? 'stalled' : 'response_timeout')
  }
  let limit = args.limits.firstByteTimeoutMs
  let timer = setTimeout(onTime, limit)
  return {
    /** The next bytes; `broken` where the connection was cut, by us or by the other side. */
    next: async (): Promise<Buffer | 'end' | 'broken'> => {
      const wanted = isFinished() ? args.limits.finishGraceMs : sawBytes ? args.limits.idleTimeoutMs : args.limits.firstByteTimeoutMs
      if (wanted === limit) timer.refresh()
      else {
        clearTimeout(timer)
        limit = wanted
        timer = setTimeout(onTime, limit)
      }
      waiting = true
      try {
        const { value, done } = await iterator.next()
        if (done === true) return 'end'
        sawBytes = true
        return value
      } catch {
        // A body only rejects when its connection is gone; who cut it is known to `stopped`.
        return graceIsOver ? 'end' : 'broken'
      } finally {
        waiting = false
      }
    },
    close: () => clearTimeout(timer),
    /** Reads what little is left, so that the connection can serve again; cuts it where that takes long. */
    drain: async (): Promise<void> => {
      const cut = setTimeout(() => args.message.destroy(), DRAIN_MS)
      try {
        while ((await iterator.next()).done !== true);
      } catch {
        // Nobody waits for these bytes.
      } finally {
        clearTimeout(cut)
      }
    },
  }
}

const fallbackUsage = (args: ReadArguments, reader: CompletionReader): ModelUsage => ({
  promptTokens: reader.usage?.promptTokens ?? args.countTokens(args.bodyText),
  completionTokens: Math.max(reader.usage?.completionTokens ?? 0, args.countTokens(reader.generated)),
  estimated: true,
})

/**
 * Reads an open answer to its end; yields everything of ModelStreamEvent. Never throws for what the provider does. Returns true where the
 * message may be left alone (it ends by itself), false where its connection must be cut.
 */
export async function* readCompletion(args: ReadArguments): AsyncGenerator<ModelStreamEvent, boolean> {
  yield { type: 'opened' }
  if (/^text\/html/i.test(args.contentType)) {
    yield { type: 'failed', code: 'unexpected_content', retryable: false, status: args.message.statusCode }
    return false
  }
  const reader = new CompletionReader(args.secrets)
  let ending: Ending | undefined
  let events: ModelStreamEvent[] = []
  const emit = (event: ModelStreamEvent): void => void events.push(event)
  const take = (): ModelStreamEvent[] => {
    const taken = events
    events = []
    return taken
  }

  /** True once nothing more is to be read. */
  const readItem = (item: SseItem): boolean => {
    if (item.kind === 'comment') return false
    if (item.kind === 'done') return true
    if (item.kind === 'fault') {
      ending = { code: item.code, sample: item.sample }
      return true
    }
    const error = readProviderError(item.value, { bare: item.event === 'error' })
    if (error !== undefined) {
      // Also after a finish_reason: what a provider calls an error is not passed off as a complete answer.
      reader.finishReason = undefined
      ending = { code: 'provider_error', error }
      return true
    }
    if (!reader.read(item.value, emit)) ending = { code: 'garbage', sample: JSON.stringify(item.value).slice(0, 200) }
    if (reader.brokenOff !== undefined)
      ending = { code: 'provider_error', error: { code: reader.brokenOff, status: undefined, message: '' } }
    return ending !== undefined
  }

  const chunks = timedChunks(args, () => reader.finishReason !== undefined)
  const whole = /^application\/(?:[a-z.+-]*\+)?json/i.test(args.contentType)
  const parser = createSseParser(args.limits)
  const pieces: Buffer[] = []
  let size = 0
  try {
    let over = false
    while (!over) {
      const bytes = await chunks.next()
      if (bytes === 'broken') {
        ending = { code: args.stopped() ?? 'connection_lost' }
        over = true
      } else if (!whole) {
        for (const item of bytes === 'end' ? parser.end() : parser.push(bytes)) {
          over = readItem(item)
          if (over) break
        }
        over ||= bytes === 'end'
      } else if (bytes === 'end') {
        over = true
        readItem(parseWhole(Buffer.concat(pieces).toString('utf8')))
      } else {
        pieces.push(bytes)
        size += bytes.length
        over = size > args.limits.maxTotalChars
        if (over) ending = { code: 'oversize' }
      }
      if (events.length > 0) yield* take()
    }
  } finally {
    chunks.close()
  }

  reader.flushText(emit)
  yield* take()
  if (reader.finishReason !== undefined) {
    const droppedToolCalls = reader.finishCalls(emit)
    yield* take()
    yield { type: 'usage', ...(reader.usage ?? fallbackUsage(args, reader)) }
    const mayEndByItself = ending === undefined && !args.message.complete && !args.message.destroyed
    if (mayEndByItself) void chunks.drain()
    yield { type: 'finished', finishReason: reader.finishReason, droppedToolCalls }
    return mayEndByItself
  }
  if (ending?.error !== undefined && !reader.hasOutput) {
    yield failureOfErrorObject(ending.error, args.secrets)
    return false
  }
  yield { type: 'usage', ...fallbackUsage(args, reader) }
  const error = ending?.error
  yield {
    type: 'interrupted',
    code: ending?.code ?? 'ended_early',
    providerCode: error === undefined ? undefined : (providerSlug(error.code) ?? 'other'),
    detail: failureDetail(error?.message ?? ending?.sample ?? '', args.secrets),
  }
  return false
}

const parseWhole = (text: string): SseItem => {
  try {
    return { kind: 'json', value: JSON.parse(text), event: '' }
  } catch {
    return { kind: 'fault', code: 'garbage', sample: text }
  }
}
