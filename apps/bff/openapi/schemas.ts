import { z } from 'zod'

export type JsonSchema = { [key: string]: unknown }

/**
 * Turns zod schemas into JSON Schema 2020-12, as OpenAPI 3.1 takes it. Schemas with an id become components, so that clients get one type
 * for each; one that differs between what is sent and what is answered (defaults) becomes two, the sent one with the suffix `Input`.
 */
export class SchemaCollection {
  readonly components: Record<string, JsonSchema> = {}
  /** How each component looks in answers. */
  readonly #outputs = new Map<string, string>()

  /** The schema of a body or parameter as it is sent (`input`) or of an answer (`output`). */
  add(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const {
      $defs = {},
      $schema: _,
      ...root
    } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: openAnswers(io) }) as JsonSchema & {
      $defs?: Record<string, JsonSchema>
    }
    const names = new Map(Object.entries($defs).map(([id, definition]) => [id, this.#nameFor(id, definition, io)]))
    for (const [id, definition] of Object.entries($defs)) {
      const name = names.get(id) ?? id
      this.components[name] ??= withRefs(definition, names)
    }
    return withRefs(root, names)
  }

  #nameFor(id: string, definition: JsonSchema, io: 'input' | 'output'): string {
    if (io === 'output') return id
    const output = this.#outputs.get(id)
    return output === undefined || output === JSON.stringify(definition) ? id : `${id}Input`
  }

  /** Notes how components look in answers, before any input is added: only then can a difference be seen. */
  noteOutput(schema: z.ZodType): void {
    const { $defs = {} } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any', override: openAnswers('output') }) as {
      $defs?: Record<string, JsonSchema>
    }
    for (const [id, definition] of Object.entries($defs)) this.#outputs.set(id, JSON.stringify(definition))
  }
}

/** Answers may gain fields in a later version; a client that refuses unknown ones would break. */
function openAnswers(io: 'input' | 'output'): z.core.ToJSONSchemaParams['override'] {
  return ({ jsonSchema }) => {
    if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
  }
}

function withRefs(schema: JsonSchema, names: ReadonlyMap<string, string>): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (key: string, value: unknown) => {
    if (key !== '$ref' || typeof value !== 'string' || !value.startsWith('#/$defs/')) return value
    const id = value.slice('#/$defs/'.length)
    return `#/components/schemas/${names.get(id) ?? id}`
  }) as JsonSchema
}
