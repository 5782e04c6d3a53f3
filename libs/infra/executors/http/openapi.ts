import type { FieldError, OpenApiSourceInput, RefusedTool } from '#contracts'
import type { OfferedTool } from '#domains/tools/ports'
import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'
import { schemaProblem } from '#kernel/tools/schema-faults'
import { localName, offeredTool, parametersProblem, plainDescription } from '../declaration.ts'
import { safeSchema } from '../safe-schema.ts'
import { floorOf, membersOf } from './declare-http.ts'
import type { HttpMethod, HttpRemote } from './declare-http.ts'
import { baseOf, operationAddress } from './openapi-servers.ts'
import type { ApiBase } from './openapi-servers.ts'
import { readTemplate } from './url-template.ts'

const methods: readonly HttpMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Parts of one operation after its references are put in. */
const MAX_PARTS = 5_000
const MAX_DEPTH = 32
/** Parameters that one operation may be offered without, and signs of each one's name that are shown. */
const MAX_LEFT_OUT = 64
const SHOWN_NAME_UNITS = 100

class RefusedOperation extends Error {
  readonly code: string

  constructor(code: string) {
    super(`the operation cannot be used: ${code}`)
    this.code = code
  }
}

export type ImportedOpenApi = { base: ApiBase; offered: OfferedTool[]; refused: RefusedTool[] }

/**
 * The chosen operations of an OpenAPI 3 document as tools. The document is a stranger's text: its descriptions are cleaned, references
 * are followed inside it alone, and it does not choose where it is: one host, the owner's `base_url` or its first server;
 * an operation of another server is refused. Answers a field's fault where the document or the base cannot be used at all.
 */
export function importOpenApi({ document: given, base_url: baseUrl, operations }: OpenApiSourceInput): ImportedOpenApi | FieldError {
  const document = given as JsonObject
  const version = document['openapi']
  if (typeof version !== 'string' || !/^3\.[0-2](\.|$)/.test(version))
    return { path: 'openapi.document', message: 'must be an OpenAPI 3 document' }
  const { paths } = document
  if (paths !== undefined && (typeof paths !== 'object' || paths === null || Array.isArray(paths)))
    return { path: 'openapi.document.paths', message: 'must be an object' }
  const base = baseOf(document, baseUrl)
  if ('path' in base) return base
  const found = operationsOf(document)
  const result: ImportedOpenApi = { base, offered: [], refused: [] }
  for (const id of new Set(operations)) {
    const operation = found.get(id)
    try {
      if (!operation) throw new RefusedOperation('no_such_operation')
      const { tool, leftOut } = new Reader(document, base.address).read(id, operation)
      result.offered.push(tool)
      result.refused.push(...leftOut.map((parameter) => ({ name: id, code: 'parameter_in_header', parameter })))
    } catch (error) {
      if (!(error instanceof RefusedOperation)) throw error
      result.refused.push({ name: id, code: error.code })
    }
  }
  return result
}

type Operation = { method: HttpMethod; path: string; operation: JsonObject; item: JsonObject }

/** By operationId; of two with one id, the first. */
function operationsOf(document: JsonObject): Map<string, Operation> {
  const found = new Map<string, Operation>()
  for (const [path, given] of Object.entries(membersOf(document['paths']))) {
    const item = membersOf(given)
    for (const method of methods) {
      const operation = membersOf(item[method.toLowerCase()])
      const id = operation['operationId']
      if (typeof id === 'string' && !found.has(id)) found.set(id, { method, path, operation, item })
    }
  }
  return found
}

class Reader {
  readonly #document: JsonObject
  readonly #base: string
  #parts = 0

  constructor(document: JsonObject, base: string) {
    this.#document = document
    this.#base = base
  }

  read(id: string, { method, path, operation, item }: Operation): { tool: OfferedTool; leftOut: string[] } {
    const at = operationAddress(this.#base, [operation['servers'], item['servers']])
    if ('refusal' in at) throw new RefusedOperation(at.refusal)
    const url = `${at.address}${path.startsWith('/') ? '' : '/'}${path}`
    const template = readTemplate(url)
    if (!template || template.chooses || /[?#]/.test(path)) throw new RefusedOperation('path_unusable')
    const properties: JsonObject = {}
    const required: string[] = []
    const places: HttpRemote['places'] = {}
    const leftOut: string[] = []
    const add = (name: string, schema: JsonValue, isRequired: boolean): void => {
      if (Object.hasOwn(properties, name) || name === '__proto__') throw new RefusedOperation('names_collide')
      properties[name] = schema
      if (isRequired) required.push(name)
    }
    for (const parameter of this.#parametersOf(item['parameters'], operation['parameters'])) {
      const { name, in: place } = parameter
      const isRequired = parameter['required'] === true || place === 'path'
      if (typeof name !== 'string') throw new RefusedOperation('parameter_unusable')
      if (place === 'header' || place === 'cookie') {
        // Headers and cookies are the owner's to set, not a model's.
        if (isRequired) throw new RefusedOperation('parameter_in_header')
        if (leftOut.push(plainDescription(name).slice(0, SHOWN_NAME_UNITS)) > MAX_LEFT_OUT)
          throw new RefusedOperation('too_large_or_circular')
        continue
      }
      if (place !== 'path' && place !== 'query') throw new RefusedOperation('parameter_unusable')
      if ((place === 'path') !== template.names.includes(name)) throw new RefusedOperation('parameter_unusable')
      if (place === 'query') places[name] = 'query'
      add(name, this.#described(parameter), isRequired)
    }
    if (template.names.some((name) => !Object.hasOwn(properties, name))) throw new RefusedOperation('parameter_unusable')
    const wholeBody = this.#addBody(method, operation['requestBody'], places, add)
    const parameters = safeSchema({ type: 'object', properties, required, additionalProperties: false })
    const problem = parametersProblem(parameters) ?? (schemaProblem(parameters) === null ? null : 'parameters_unusable')
    if (problem !== null) throw new RefusedOperation(problem)
    const floor = floorOf(method)
    const remote: HttpRemote = { method, url, places, whole_body: wholeBody, look_up_url: null }
    const words = [operation['summary'], operation['description']].filter((text) => typeof text === 'string')
    const description = plainDescription(words.join('\n')) || `${method} ${path}`
    const tool = offeredTool(localName(id), {
      description,
      parameters,
      floor,
      usual: floor,
      egress: 'declared',
      price_micros: null,
      remote,
    })
    if (!tool) throw new RefusedOperation('parameters_unusable')
    return { tool, leftOut }
  }

  /** An operation's own parameters replace those of its path. */
  #parametersOf(shared: JsonValue | undefined, own: JsonValue | undefined): JsonObject[] {
    const byName = new Map<string, JsonObject>()
    for (const given of [shared ?? [], own ?? []].flatMap((list) => (Array.isArray(list) ? list : [null]))) {
      const parameter = membersOf(this.#inline(given, 0))
      byName.set(JSON.stringify([parameter['in'], parameter['name']]), parameter)
    }
    return [...byName.values()]
  }

  #described(parameter: JsonObject): JsonValue {
    const schema = parameter['schema'] === undefined ? {} : membersOf(parameter['schema'])
    const words = parameter['description']
    return typeof words === 'string' ? { ...schema, description: plainDescription(words).slice(0, 500) } : schema
  }

  /** Adds a JSON body's members, or the body as one argument; answers that argument's name. */
  #addBody(
    method: HttpMethod,
    given: JsonValue | undefined,
    places: HttpRemote['places'],
    add: (name: string, schema: JsonValue, isRequired: boolean) => void,
  ): string | null {
    if (given === undefined) return null
    if (method === 'GET' || method === 'HEAD') throw new RefusedOperation('body_unusable')
    const body = membersOf(this.#inline(given, 0))
    const content = membersOf(membersOf(body['content'])['application/json'])
    if (content['schema'] === undefined) throw new RefusedOperation('body_unusable')
    const schema = membersOf(content['schema'])
    const isRequired = body['required'] === true
    const members = membersOf(schema['properties'])
    const isPlain =
      schema['type'] === 'object' &&
      Object.keys(members).length > 0 &&
      !['anyOf', 'oneOf', 'allOf'].some((keyword) => schema[keyword] !== undefined)
    if (!isPlain) {
      add('body', schema, isRequired)
      places['body'] = 'body'
      return 'body'
    }
    const required = Array.isArray(schema['required']) ? schema['required'] : []
    for (const [name, member] of Object.entries(members)) {
      add(name, member, isRequired && required.includes(name))
      places[name] = 'body'
    }
    return null
  }

  /** A part with its references put in; text that a model would read is cleaned. */
  #inline(value: JsonValue, depth: number): JsonValue {
    if (++this.#parts > MAX_PARTS || depth > MAX_DEPTH) throw new RefusedOperation('too_large_or_circular')
    if (Array.isArray(value)) return value.map((item) => this.#inline(item, depth + 1))
    if (typeof value !== 'object' || value === null) return value
    const reference = value['$ref']
    if (typeof reference === 'string') return this.#inline(this.#resolve(reference), depth + 1)
    const inlined: JsonObject = {}
    for (const [name, member] of Object.entries(value)) {
      if (name === 'description' && typeof member === 'string') inlined[name] = plainDescription(member).slice(0, 500)
      else if (name !== '__proto__') inlined[name] = this.#inline(member, depth + 1)
    }
    return inlined
  }

  #resolve(reference: string): JsonValue {
    if (!reference.startsWith('#/')) throw new RefusedOperation('reference_outside')
    let at: JsonValue | undefined = this.#document
    for (const step of reference.slice(2).split('/')) {
      const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
      const members: JsonObject = membersOf(at)
      at = Object.hasOwn(members, name) ? members[name] : undefined
    }
    if (at === undefined) throw new RefusedOperation('reference_outside')
    return at
  }
}
