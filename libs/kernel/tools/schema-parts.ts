import type { JsonObject, JsonValue } from '../ports/model-gateway.ts'

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

/** The names that a reference inside a schema goes through. */
export function stepsOf(reference: string): string[] {
  return reference
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Where a reference inside a schema leads; undefined for one that leads nowhere, or elsewhere. */
export function resolve(root: JsonObject, reference: string): JsonValue | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let at: JsonValue | undefined = root
  for (const name of stepsOf(reference)) {
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return at
}

/** Keywords that say nothing about a value, or that only a promise of the far side could hold. */
const supported: ReadonlySet<string> = new Set(
  `$ref $defs definitions type enum const anyOf oneOf allOf not properties required additionalProperties minProperties maxProperties propertyNames items prefixItems
   minItems maxItems uniqueItems minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
   $schema $id $comment title description default examples example deprecated readOnly writeOnly format pattern nullable
   contentEncoding contentMediaType externalDocs xml discriminator`.split(/\s+/),
)

/** A keyword of a schema that could refuse and that nobody here knows. */
export function unknownKeyword(schema: JsonObject): string | undefined {
  return Object.keys(schema).find((keyword) => !supported.has(keyword) && !keyword.startsWith('x-'))
}
