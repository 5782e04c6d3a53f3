/** What the served OpenAPI document says, in a form that tests are generated from. */
import type { OpenApiDocument, Operation } from '../../apps/bff/openapi/document.ts'
import type { TestSystem } from './system.ts'

type Schema = { [key: string]: unknown }

export type DocumentedCall = {
  method: string
  /** `/v1/characters/{id}` */
  path: string
  operation: Operation
  scope: string | null
  pathParameters: Record<string, Schema>
  queryParameters: Record<string, { schema: Schema; required: boolean }>
  /** Media types of the body; empty for none. */
  bodyTypes: string[]
  /** A JSON body's schema, references resolved one level at a time by `at`. */
  jsonBody: Schema | null
}

export class ApiReader {
  readonly document: OpenApiDocument

  constructor(document: OpenApiDocument) {
    this.document = document
  }

  static async of(lingtai: TestSystem): Promise<ApiReader> {
    const answer = await lingtai.call('GET', '/docs/openapi.json', { token: null })
    return new ApiReader(answer.json() as OpenApiDocument)
  }

  get calls(): DocumentedCall[] {
    return Object.entries(this.document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => {
        const content = operation.requestBody?.content ?? {}
        const json = operation.requestBody && Object.keys(content).length === 1 ? content['application/json'] : undefined
        return {
          method: method.toUpperCase(),
          path,
          operation,
          scope: operation['x-scope'] ?? null,
          pathParameters: Object.fromEntries(
            operation.parameters.flatMap(({ in: where, name, schema }) => (where === 'path' ? [[name, schema]] : [])),
          ),
          queryParameters: Object.fromEntries(
            operation.parameters.flatMap(({ in: where, name, schema, required }) =>
              where === 'query' ? [[name, { schema, required }]] : [],
            ),
          ),
          bodyTypes: Object.keys(content),
          jsonBody: json ? json.schema : null,
        }
      }),
    )
  }

  /** The schema behind a reference. */
  at(schema: Schema): Schema {
    const reference = schema['$ref']
    if (typeof reference !== 'string') return schema
    const found = this.document.components.schemas[reference.slice('#/components/schemas/'.length)]
    if (!found) throw new Error(`the document refers to ${reference}, which it lacks`)
    return this.at(found)
  }

  /** A value that fits: required members only, the smallest of each. */
  sample(schema: Schema): unknown {
    const { type, ...at } = this.at(schema) as Schema & {
      type?: string
      anyOf?: Schema[]
      oneOf?: Schema[]
      enum?: unknown[]
      properties?: Record<string, Schema>
      required?: string[]
      pattern?: string
    }
    if ('const' in at) return at['const']
    if (at.enum) return at.enum[0]
    const alternatives = at.anyOf ?? at.oneOf
    if (alternatives?.[0]) return this.sample(alternatives[0])
    switch (type) {
      case 'object':
        return Object.fromEntries((at.required ?? []).map((name) => [name, this.sample(at.properties?.[name] ?? {})]))
      case 'array':
        return Array.from({ length: Number(at['minItems'] ?? 0) }, () => this.sample((at['items'] ?? {}) as Schema))
      case 'integer':
      case 'number':
        return Number(at['minimum'] ?? 1)
      case 'boolean':
        return true
      case 'null':
        return null
      default:
        return at['format'] === 'uuid'
          ? crypto.randomUUID()
          : at.pattern === '^[0-9a-f]{64}$'
            ? '0'.repeat(64)
            : at.pattern?.includes('a-z_')
              ? 'word'
              : 'x'.repeat(Math.max(1, Number(at['minLength'] ?? 1)))
    }
  }

  /** The path with every parameter filled in; `ids` by name, a fresh id or the first enum value where left out. */
  fill(call: DocumentedCall, ids: Readonly<Record<string, string>> = {}): string {
    return call.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(ids[name] ?? String(this.sample(call.pathParameters[name] ?? {}))),
    )
  }

  /** `?a=b` with the required query parameters. */
  requiredQuery(call: DocumentedCall): string {
    const pairs = Object.entries(call.queryParameters).flatMap(([name, { schema, required }]) =>
      required ? [`${name}=${encodeURIComponent(String(this.sample(schema)))}`] : [],
    )
    return pairs.length === 0 ? '' : `?${pairs.join('&')}`
  }

  /** A body that fits, for a call that takes JSON. */
  sampleBody(call: DocumentedCall): unknown {
    return call.jsonBody === null ? undefined : this.sample(call.jsonBody)
  }
}
