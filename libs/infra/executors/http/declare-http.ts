import type { FieldError, HttpToolInput } from '#contracts'
import type { OfferedTool } from '#domains/tools/ports'
import { higherClass } from '#domains/tools/source-contract'
import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'
import { schemaProblem } from '#kernel/tools/schema-faults'
import { offeredTool, parametersProblem } from '../declaration.ts'
import { safeSchema } from '../safe-schema.ts'
import { readTemplate } from './url-template.ts'

export type HttpMethod = HttpToolInput['method']

/** How an HTTP tool is called; where arguments stand that are in no place is the address itself. */
export type HttpRemote = {
  method: HttpMethod
  url: string
  places: Record<string, 'query' | 'body'>
  /** The name of the argument that is the whole body, where it is not an object made of several. */
  whole_body: string | null
  look_up_url: string | null
}

const reading: ReadonlySet<HttpMethod> = new Set<HttpMethod>(['GET', 'HEAD'])
const bodiless: ReadonlySet<HttpMethod> = new Set<HttpMethod>(['GET', 'HEAD', 'DELETE'])

/** The class that a method has at least. */
export function floorOf(method: HttpMethod): 'read_only' | 'irreversible_external' {
  return reading.has(method) ? 'read_only' : 'irreversible_external'
}

/** Reads one declared tool, or says what is wrong with it and where. */
export function declareHttpTool(input: HttpToolInput, path: string): OfferedTool | FieldError {
  const parameters = safeSchema(input.parameters)
  const problem = parametersProblem(parameters)
  if (problem !== null)
    return { path: `${path}.parameters`, message: problem === 'parameters_no_object' ? 'must be a schema of an object' : 'is too large' }
  const unusable = schemaProblem(parameters)
  if (unusable !== null) return { path: `${path}.parameters`, message: `cannot be checked: ${unusable}` }
  const template = readTemplate(input.url)
  if (!template) return { path: `${path}.url`, message: 'must be an http or https address without a password' }
  const names = Object.keys(membersOf(parameters['properties']))
  const unknown = template.names.find((name) => !names.includes(name))
  if (unknown !== undefined) return { path: `${path}.url`, message: `names ${unknown}, which the parameters lack` }
  const lookUp = input.look_up_url === undefined ? null : readTemplate(input.look_up_url)
  if (
    input.look_up_url !== undefined &&
    (!lookUp || lookUp.chooses || lookUp.names.some((name) => name !== 'key') || lookUp.names.length === 0)
  ) {
    return { path: `${path}.look_up_url`, message: 'must be an address with {key} in its path or query' }
  }
  const places: HttpRemote['places'] = {}
  for (const name of names.filter((name) => !template.names.includes(name))) {
    places[name] =
      (Object.hasOwn(input.places ?? {}, name) ? input.places?.[name] : undefined) ?? (bodiless.has(input.method) ? 'query' : 'body')
    if (places[name] === 'body' && reading.has(input.method))
      return { path: `${path}.places`, message: `${input.method} has no body for ${name}` }
  }
  const remote: HttpRemote = { method: input.method, url: input.url, places, whole_body: null, look_up_url: input.look_up_url ?? null }
  const floor = floorOf(input.method)
  const tool = offeredTool(input.name, {
    description: input.description,
    parameters,
    floor,
    usual: higherClass(floor, input.capability ?? floor),
    egress: template.chooses ? 'free' : 'declared',
    price_micros: input.price_micros ?? null,
    remote,
  })
  return tool ?? { path: `${path}.parameters`, message: 'must not hold a whole number beyond ±(2^53 - 1)' }
}

export function membersOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
