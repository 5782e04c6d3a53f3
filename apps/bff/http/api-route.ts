import { createParamDecorator, HttpCode, RequestMapping, RequestMethod } from '@nestjs/common'
import type { ExecutionContext } from '@nestjs/common'
import type { Request } from 'express'
import type { z } from 'zod'
import type { TokenScope } from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { JSON_BODY_LIMIT } from './read-body.ts'
import { RawBody } from './route-shapes.ts'
import type { EventStream, FileAnswer, NoContent, SentFile } from './route-shapes.ts'
import { stateOf } from './request-state.ts'

/** Who may call: anybody, or whoever holds the scope (`admin` also wants the role). */
export type Access = 'public' | TokenScope

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type BodyShape = z.ZodType | RawBody | undefined
type AnswerShape = z.ZodType | NoContent | FileAnswer | EventStream
type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined

/** What a handler is given: everything parsed, and who asks. */
export type RouteInput<Path extends string, Params, Query, Body, Who extends Access> = {
  principal: Who extends 'public' ? null : Principal
  params: Params extends z.ZodType ? z.output<Params> : { [Name in NamesIn<Path>]: string }
  query: Parsed<Query>
  body: Body extends RawBody ? Uint8Array : Parsed<Body>
  traceId: string
  request: Request
}

export type RouteAnswer<Answer> = Answer extends z.ZodType ? z.output<Answer> : Answer extends FileAnswer ? SentFile : void

/** Ids from which an answer can be built again (decisions 13, 30). */
export type KeptIds = Readonly<Record<string, string | number | null | readonly string[]>>

type Options<Path extends string, Params, Query, Body, Answer, Who extends Access, Self, Kept> = {
  method: Method
  /** As documented: `/v1/characters/{id}`. A parameter is an id unless `params` says otherwise. */
  path: Path
  summary: string
  description?: string
  access: Who
  params?: Params
  query?: Query
  body?: Body
  /** Most bytes of a JSON body. */
  bodyLimit?: number
  answer: Answer
  /** HTTP status of success; 200, or 204 for `noContent`, where left out. */
  status?: number
  /**
   * How a mutation answers when its Idempotency-Key comes again: `keep` picks ids out of the first answer (its `id` where left out) and
   * `rebuild` makes the answer from them. Needed wherever a mutation answers with a body, unless `idempotent` is false.
   */
  keep?: (answer: RouteAnswer<Answer>) => Kept
  rebuild?: (self: Self, input: RouteInput<Path, Params, Query, Body, Who>, kept: Kept) => Promise<RouteAnswer<Answer>>
  /**
   * Waits or looks before the mutation's transaction begins, where waiting inside it would hold up what is waited for. May fill in the
   * body. Not decisive for a repeated key: what it throws counts only for a first request.
   */
  before?: (self: Self, input: RouteInput<Path, Params, Query, Body, Who>) => Promise<void>
  /** false for a call that writes nothing or asks others than the database: its key is accepted and means nothing. */
  idempotent?: boolean
}

/** A route as the edge, the document and the tests see it. */
export type RouteDefinition = {
  method: Method
  path: string
  summary: string
  description: string | undefined
  access: Access
  params: z.ZodType | undefined
  query: z.ZodType | undefined
  body: BodyShape
  bodyLimit: number
  answer: AnswerShape
  status: number
  isMutation: boolean
  idempotent: boolean
  keep: (answer: unknown) => KeptIds
  rebuild: ((self: unknown, input: unknown, kept: KeptIds) => Promise<unknown>) | undefined
  before: ((self: unknown, input: unknown) => Promise<void>) | undefined
}

const ROUTE = Symbol('lingtai route')

/**
 * Declares everything about one route: where it is, who may call it, what comes in and goes out. The handler's own types are checked
 * against it. `@Input()` hands over the parsed input; a handler of an event stream takes `@Res()` as well and writes itself.
 */
export function ApiRoute<
  const Path extends string,
  Answer extends AnswerShape,
  Who extends Access,
  Params extends z.ZodType | undefined = undefined,
  Query extends z.ZodType | undefined = undefined,
  Body extends BodyShape = undefined,
  Self = unknown,
  Kept extends KeptIds = { id: string },
>(options: Options<Path, Params, Query, Body, Answer, Who, Self, Kept>) {
  const status = options.status ?? ('kind' in options.answer && options.answer.kind === 'no_content' ? 204 : 200)
  const isMutation = options.method !== 'GET'
  const idempotent = isMutation && options.access !== 'public' && options.idempotent !== false
  const definition = {
    method: options.method,
    path: options.path,
    summary: options.summary,
    description: options.description,
    access: options.access,
    params: options.params,
    query: options.query,
    body: options.body,
    bodyLimit: options.body instanceof RawBody ? options.body.limit : (options.bodyLimit ?? JSON_BODY_LIMIT),
    answer: options.answer,
    status,
    isMutation,
    idempotent,
    keep: options.keep ?? ((answer: { id: string }) => ({ id: answer.id })),
    rebuild: options.rebuild,
    before: options.before,
    // The handler's types were checked against the options where they were given; from here on they are data.
  } as unknown as RouteDefinition
  if (idempotent && !options.rebuild && status !== 204) {
    throw new Error(`${options.method} ${options.path} answers with a body: say how to rebuild it, or set idempotent: false`)
  }

  return (
    target: object,
    key: string,
    descriptor: { value?: (input: RouteInput<Path, Params, Query, Body, Who>, ...rest: never[]) => Promise<RouteAnswer<Answer>> },
  ): void => {
    const handler = descriptor as TypedPropertyDescriptor<unknown>
    RequestMapping({ path: options.path.replaceAll(/\{(\w+)\}/g, ':$1'), method: RequestMethod[options.method] })(target, key, handler)
    HttpCode(status)(target, key, handler)
    if (descriptor.value) Reflect.defineMetadata(ROUTE, definition, descriptor.value)
  }
}

/** The declaration of a handler, or undefined for one that has none. */
export function routeOf(handler: object): RouteDefinition | undefined {
  return Reflect.getMetadata(ROUTE, handler) as RouteDefinition | undefined
}

/** Every route of the controllers, in the order in which they are declared. */
export function routesOf(controllers: readonly { prototype: object }[]): RouteDefinition[] {
  return controllers.flatMap(({ prototype }) =>
    Object.getOwnPropertyNames(prototype).flatMap((name) => {
      const handler: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value
      return typeof handler === 'function' ? (routeOf(handler) ?? []) : []
    }),
  )
}

/** The parsed input of the route: see RouteInput. */
export const Input = createParamDecorator(
  (_: unknown, context: ExecutionContext) => stateOf(context.switchToHttp().getRequest<Request>()).input,
)
