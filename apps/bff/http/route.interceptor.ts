import { StreamableFile } from '@nestjs/common'
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common'
import type { Request, Response } from 'express'
import { from, lastValueFrom } from 'rxjs'
import type { Observable } from 'rxjs'
import { z } from 'zod'
import { Id, LingtaiError } from '#contracts'
import { routeOf } from './api-route.ts'
import type { KeptIds, RouteDefinition } from './api-route.ts'
import { cleanJson } from './clean-input.ts'
import { sendFile } from './send-file.ts'
import type { Idempotency } from './idempotency.ts'
import { parseInput } from './parse-input.ts'
import { readBytes, readJson } from './read-body.ts'
import { RawBody } from './route-shapes.ts'
import type { SentFile } from './route-shapes.ts'
import { stateOf } from './request-state.ts'

const IdempotencyKey = z.string().regex(/^[!-~]{1,255}$/, 'must be 1 to 255 printable characters without spaces')

type Input = { principal: unknown; params: unknown; query: unknown; body: unknown; traceId: string; request: Request }

/** Walks a request from bytes to the handler and its answer back: parsed by the route's schemas, once per idempotency key. */
export class RouteInterceptor implements NestInterceptor {
  readonly #idempotency: Idempotency
  readonly #controllerOf: (type: ReturnType<ExecutionContext['getClass']>) => unknown
  readonly #checksAnswers: boolean

  constructor(parts: {
    idempotency: Idempotency
    /** The running controller of a class, for `rebuild`. */
    controllerOf: (type: ReturnType<ExecutionContext['getClass']>) => unknown
    /** Whether an answer that is not what the document says is an error; for tests. */
    checksAnswers: boolean
  }) {
    this.#idempotency = parts.idempotency
    this.#controllerOf = parts.controllerOf
    this.#checksAnswers = parts.checksAnswers
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return from(this.#serve(context, next))
  }

  async #serve(context: ExecutionContext, next: CallHandler): Promise<unknown> {
    const route = routeOf(context.getHandler())
    if (!route) throw new Error('a handler without ApiRoute')
    const request = context.switchToHttp().getRequest<Request>()
    const response = context.switchToHttp().getResponse<Response>()
    const { input, bytes } = await readInput(request, route)
    const state = stateOf(request)
    state.input = input
    const key = route.idempotent ? idempotencyKeyOf(request) : undefined
    // The handler runs where it is called, so inside the unit of work where there is one.
    const act = (): Promise<unknown> => lastValueFrom(next.handle(), { defaultValue: undefined })
    const before = async (): Promise<void> => route.before?.(this.#controllerOf(context.getClass()), input)
    if (key === undefined || !state.principal) {
      await before()
      return this.#answer({ route, request, response, answer: await act() })
    }

    const hasBody = route.status !== 204
    const { answer, replayed } = await this.#idempotency.run<unknown>({
      ownerId: state.principal.ownerId,
      method: route.method,
      route: route.path,
      key,
      content: [request.originalUrl, bytes],
      before,
      act,
      status: route.status,
      keep: (first) => (hasBody ? route.keep(first) : null),
      rebuild: (kept) => this.#rebuild(context, { route, input, kept }),
    })
    if (replayed) response.setHeader('Idempotency-Replayed', 'true')
    return this.#answer({ route, request, response, answer })
  }

  async #rebuild(
    context: ExecutionContext,
    { route, input, kept }: { route: RouteDefinition; input: Input; kept: KeptIds | null },
  ): Promise<unknown> {
    if (!route.rebuild || kept === null) return undefined
    return route.rebuild(this.#controllerOf(context.getClass()), input, kept)
  }

  #answer({
    route,
    request,
    response,
    answer,
  }: {
    route: RouteDefinition
    request: Request
    response: Response
    answer: unknown
  }): unknown {
    if (route.answer instanceof z.ZodType) {
      if (this.#checksAnswers) route.answer.parse(answer)
      return answer
    }
    if (route.answer.kind !== 'file') return undefined
    const bytes = sendFile(request, response, answer as SentFile)
    return bytes && new StreamableFile(bytes)
  }
}

async function readInput(request: Request, route: RouteDefinition): Promise<{ input: Input; bytes: Uint8Array }> {
  const state = stateOf(request)
  const given = cleanJson(lowerCased(request.params), 'params')
  const params = parseInput(route.params ?? idParams(route.path), given, 'params')
  const query = route.query && parseInput(route.query, givenQuery(request, route.query), 'query')
  let body: unknown
  let bytes: Uint8Array = new Uint8Array()
  if (route.body instanceof RawBody) {
    bytes = await readBytes(request, route.body)
    body = bytes
  } else if (route.body) {
    const json = await readJson(request, route.bodyLimit)
    bytes = json.bytes
    body = parseInput(route.body, json.value)
  }
  return { input: { principal: state.principal, params, query, body, traceId: state.traceId, request }, bytes }
}

/** Ids compare as text inside, in lower case. */
function lowerCased(params: Request['params']): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value).toLowerCase()]))
}

/** The query as objects of text. A parameter without a value says nothing, and must not be read as 0 or as "any". */
function givenQuery(request: Request, schema: z.ZodType): unknown {
  const given = cleanJson({ ...request.query }, 'query') as Record<string, unknown>
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const errors = known
    .filter((name) => given[name] === '')
    .map((name) => ({ path: `query.${name}`, message: 'must not be empty; leave it out' }))
  if (errors.length > 0) throw new LingtaiError('validation_failed', undefined, { errors })
  return given
}

const idParamsByPath = new Map<string, z.ZodType>()

function idParams(path: string): z.ZodType {
  const known = idParamsByPath.get(path)
  if (known) return known
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
  const schema = z.object(Object.fromEntries(names.map((name) => [name, Id])))
  idParamsByPath.set(path, schema)
  return schema
}

function idempotencyKeyOf(request: Request): string | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  if (Array.isArray(header))
    throw new LingtaiError('validation_failed', undefined, { errors: [{ path: 'headers.idempotency-key', message: 'must be given once' }] })
  return parseInput(IdempotencyKey, header, 'headers.idempotency-key')
}
