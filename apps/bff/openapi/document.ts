import { z } from 'zod'
import { errorCodes, Id, Problem } from '#contracts'
import type { RouteDefinition } from '../http/api-route.ts'
import { RawBody } from '../http/route-shapes.ts'
import { SchemaCollection } from './schemas.ts'
import type { JsonSchema } from './schemas.ts'

export type OpenApiDocument = {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, unknown>; responses: Record<string, unknown> }
}

export type Operation = {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema }> }
  responses: Record<string, unknown>
  /** The token scope that the call needs; absent for public ones. */
  'x-scope'?: string
}

type Parameter = { name: string; in: 'path' | 'query' | 'header'; required: boolean; schema: JsonSchema; description?: string }

const description = `Self-hosted backend on which AI characters live. Sign in with a bearer token (\`npm run -s token -- --name NAME\`) or the page's session cookie.
Errors are RFC 9457 problems with a stable \`code\`. Mutations take an \`Idempotency-Key\`: the same key with the same request acts once.
Another owner's id answers 404.`

/** The API as an OpenAPI 3.1 document, made from the very declarations that the server runs by. */
export function openApiDocument({ routes, version }: { routes: readonly RouteDefinition[]; version: string }): OpenApiDocument {
  const schemas = new SchemaCollection()
  for (const { answer } of routes) if (answer instanceof z.ZodType) schemas.noteOutput(answer)
  const problem = schemas.add(Problem, 'output')
  const paths: OpenApiDocument['paths'] = {}
  for (const route of routes) {
    const operations = (paths[route.path] ??= {})
    operations[route.method.toLowerCase()] = operationOf(route, schemas)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Lingtai', version, description },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map((route) => tagOf(route.path)))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'An API token, beginning with lt_.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'lingtai_session_<port>',
          description: 'The page’s session; mutations also need the page’s Origin.',
        },
      },
      responses: {
        Problem: {
          description: `A refusal. Codes: ${Object.keys(errorCodes).join(', ')}.`,
          content: { 'application/problem+json': { schema: problem } },
        },
      },
    },
  }
}

function operationOf(route: RouteDefinition, schemas: SchemaCollection): Operation {
  const requestBody = bodyOf(route, schemas)
  return {
    operationId: operationIdOf(route),
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [tagOf(route.path)],
    security: route.access === 'public' ? [] : [{ token: [] }, { session: [] }],
    ...(route.access === 'public' ? {} : { 'x-scope': route.access }),
    parameters: parametersOf(route, schemas),
    ...(requestBody ? { requestBody } : {}),
    responses: responsesOf(route, schemas),
  }
}

/** `/v1/characters/{id}/versions` belongs to `characters`, `/v1/admin/runs` to `admin`. */
function tagOf(path: string): string {
  const [first = 'operations', second] = path.split('/').filter((piece) => piece !== '')
  return first === 'v1' && second !== undefined ? second : 'operations'
}

/** `getCharactersId`, `postCharactersImport`: stable names for generated clients. */
function operationIdOf({ method, path }: RouteDefinition): string {
  const words = path
    .replace(/^\/v1\//, '/')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('')
}

function parametersOf(route: RouteDefinition, schemas: SchemaCollection): Parameter[] {
  const params = route.params ? propertiesOf(schemas.add(route.params, 'input')) : undefined
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']): Parameter => ({
    name,
    in: 'path',
    required: true,
    schema: params?.properties[name] ?? schemas.add(Id, 'input'),
  }))
  const query = route.query ? propertiesOf(schemas.add(route.query, 'input')) : { properties: {}, required: [] }
  const inQuery = Object.entries(query.properties).map(([name, schema]): Parameter => ({
    name,
    in: 'query',
    required: query.required.includes(name),
    schema,
  }))
  const key: Parameter[] = route.idempotent
    ? [
        {
          name: 'Idempotency-Key',
          in: 'header',
          required: false,
          description:
            'The same key with the same request acts once and answers the same for 24 hours; with another request it is refused.',
          schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
        },
      ]
    : []
  return [...inPath, ...inQuery, ...key]
}

function propertiesOf(schema: JsonSchema): { properties: Record<string, JsonSchema>; required: string[] } {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, JsonSchema>; required?: string[] }
  return { properties, required }
}

function bodyOf({ body }: RouteDefinition, schemas: SchemaCollection): Operation['requestBody'] {
  if (body === undefined) return undefined
  if (!(body instanceof RawBody)) return { required: true, content: { 'application/json': { schema: schemas.add(body, 'input') } } }
  return {
    required: true,
    content: Object.fromEntries(body.types.map((type) => [type, { schema: type === 'application/json' ? { type: 'object' } : {} }])),
  }
}

function responsesOf(route: RouteDefinition, schemas: SchemaCollection): Record<string, unknown> {
  return {
    [route.status]: successOf(route, schemas),
    ...(route.access === 'public' ? {} : { 401: { $ref: '#/components/responses/Problem' } }),
    default: { $ref: '#/components/responses/Problem' },
  }
}

function successOf({ answer }: RouteDefinition, schemas: SchemaCollection): unknown {
  if (answer instanceof z.ZodType)
    return { description: 'Done.', content: { 'application/json': { schema: schemas.add(answer, 'output') } } }
  switch (answer.kind) {
    case 'no_content':
      return { description: 'Done; there is nothing to say.' }
    case 'file':
      return { description: 'The file.', content: Object.fromEntries(answer.types.map((type) => [type, { schema: {} }])) }
    case 'event_stream':
      return {
        description: 'Server-sent events; the data of each is one of these.',
        content: { 'text/event-stream': { schema: schemas.add(answer.event, 'output') } },
      }
  }
}
