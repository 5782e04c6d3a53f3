import type { ToolDeclaration } from '#domains/tools/ports'
import type { Clock } from '#kernel/ports/clock'
import type { EffectCall, EffectOutcome, EffectTarget, LookUp, Observation, ToolContract } from '#kernel/ports/effect-target'
import { fitSchema } from '#kernel/tools/fit-schema'
import { constraintsOf } from '../contract.ts'
import { failed, observe, OBSERVATION_MAX_BYTES } from '../observation.ts'
import { maskValues } from '../mask-values.ts'
import type { AddressGuard } from './address-guard.ts'
import { buildRequest } from './build-request.ts'
import type { HttpRemote } from './declare-http.ts'
import { readBounded, RequestLostError, RequestNotSentError, sendGuarded } from './guarded-request.ts'
import type { BoundedBody } from './guarded-request.ts'
import { readContent } from './read-content.ts'
import { fillTemplate, readTemplate } from './url-template.ts'

/** Time for a whole call, from the look-up of the name to the last byte, in ms. */
export const HTTP_TIME_LIMIT_MS = 20_000

export type HttpTargetParts = {
  contract: ToolContract
  declaration: ToolDeclaration
  headers: Readonly<Record<string, string>>
  guard: AddressGuard
  clock: Clock
  timeLimitMs?: number
}

type Answer = {
  status: number
  host: string
  body: BoundedBody
  contentType: string | undefined
  contentEncoding: string | undefined
  licence: string | null
}

/**
 * One HTTP tool of an owner. What it answers is untrusted, whatever it says. Codes: `http_404` and the like, those of the address guard
 * and of the connection, `unsupported_content`, `timeout`, `aborted`.
 */
export class HttpTarget implements EffectTarget {
  readonly #parts: HttpTargetParts
  readonly #remote: HttpRemote

  constructor(parts: HttpTargetParts) {
    this.#parts = parts
    // Written by declareHttpTool or importOpenApi, and bound by the tool's version.
    this.#remote = parts.declaration.remote as HttpRemote
  }

  enforces(contract: ToolContract) {
    return constraintsOf(contract)
  }

  async execute(call: EffectCall): Promise<EffectOutcome> {
    if (call.signal.aborted) return failed('aborted')
    const { declaration, contract } = this.#parts
    if (fitSchema(declaration.parameters, call.arguments).length > 0) return failed('arguments_invalid')
    const request = buildRequest(this.#remote, { arguments: call.arguments, idempotencyKey: call.idempotencyKey })
    if (!request) return failed('arguments_invalid')
    try {
      return this.#settle(await this.#exchange(request, call.signal))
    } catch (error) {
      if (error instanceof RequestNotSentError) return failed(error.code)
      if (!(error instanceof RequestLostError)) throw error
      return contract.consequence === 'none' ? failed(error.code) : { type: 'unknown', code: error.code }
    }
  }

  async lookUp(call: Omit<EffectCall, 'signal'>): Promise<LookUp | null> {
    const template = this.#remote.look_up_url === null ? null : readTemplate(this.#remote.look_up_url)
    const url = template && fillTemplate(template, { key: call.idempotencyKey })
    if (!url) return null
    try {
      const request = { url, method: 'GET', headers: {}, body: null }
      const answer = await this.#exchange(request, new AbortController().signal)
      if (answer.status === 404) return { type: 'absent' }
      if (answer.status !== 200) return { type: 'unavailable' }
      return { type: 'committed', argumentsHash: null, observation: this.#observation(answer) }
    } catch (error) {
      if (error instanceof RequestNotSentError || error instanceof RequestLostError) return { type: 'unavailable' }
      throw error
    }
  }

  async #exchange(
    request: { url: URL; method: string; headers: Record<string, string>; body: Uint8Array | null },
    signal: AbortSignal,
  ): Promise<Answer> {
    const { guard, headers, timeLimitMs = HTTP_TIME_LIMIT_MS } = this.#parts
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeLimitMs)])
    const message = await sendGuarded(guard, {
      ...request,
      headers: { accept: 'application/json, text/*;q=0.9', 'user-agent': 'lingtai', ...headers, ...request.headers },
      signal: limited,
    })
    return {
      status: message.statusCode ?? 0,
      host: request.url.host,
      contentType: message.headers['content-type'],
      contentEncoding: message.headers['content-encoding'],
      licence: licenceOf(message.headers.link),
      body: await readBounded(message, OBSERVATION_MAX_BYTES, limited),
    }
  }

  /** 2xx: it happened. 4xx: an authoritative no. Everything else says nothing of what happened. */
  #settle(answer: Answer): EffectOutcome {
    const { contract } = this.#parts
    const { status, body } = answer
    const lasting = contract.consequence === 'lasting'
    if (status >= 200 && status < 300) {
      // A lasting call has happened, whatever became of the words about it; of a reading, the beginning alone is no answer.
      if (!lasting && body.cut !== null && body.cut !== 'limit') return failed(body.cut === 'lost' ? 'connection_lost' : body.cut)
      const observation = this.#observation(answer)
      if (observation) return { type: 'done', observation, costMicros: null }
      if (!lasting) return failed('unsupported_content')
      return {
        type: 'done',
        observation: this.#observe(answer, { text: `(done; the answer is of a type that is not read)` }),
        costMicros: null,
      }
    }
    const code = status >= 300 && status < 400 ? 'redirect_refused' : `http_${status}`
    if (lasting && (status < 400 || status >= 500)) return { type: 'unknown', code }
    return { type: 'failed', code, observation: this.#observation(answer) }
  }

  #observation(answer: Answer): Observation | null {
    const content = readContent({ bytes: answer.body.bytes, contentType: answer.contentType, contentEncoding: answer.contentEncoding })
    return content && this.#observe(answer, content)
  }

  #observe({ host, body, licence }: Answer, content: { text: string; mediaType?: Observation['mediaType'] }): Observation {
    return observe({
      ...content,
      // A far side that repeats what it was sent does not put the owner's keys before a model.
      text: maskValues(content.text, Object.values(this.#parts.headers)),
      source: host,
      at: this.#parts.clock.now(),
      licence,
      trust: 'untrusted',
      truncated: body.cut !== null,
    })
  }
}

/** The licence that an answer's Link header names (RFC 8288, relation `license`). */
function licenceOf(link: string | string[] | undefined): string | null {
  const text = (Array.isArray(link) ? link.join(', ') : (link ?? '')).slice(0, 8_192)
  return /<([^<>]{1,500})>\s*;[^<,]*rel="?license"?/i.exec(text)?.[1] ?? null
}
