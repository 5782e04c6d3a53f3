import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Constraint } from '#contracts'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { canonicalJson } from '#kernel/record/canonical-json'

/** A contract with the digest of what the owner sees of it. Throws NotCanonicalError for parameters that JSON cannot carry safely. */
export function contractOf(parts: Omit<ToolContract, 'version'>): ToolContract {
  return { ...parts, version: versionOf(parts) }
}

/** Digest of description and parameters, SHA-256 in hex: whoever changes either has another tool. */
export function versionOf({ description, parameters }: Pick<ToolContract, 'description' | 'parameters'>): string {
  return createHash('sha256').update(canonicalJson({ description, parameters })).digest('hex')
}

/** The parameters of a zod object as the JSON schema that a model is shown. */
export function parametersOf(schema: z.ZodObject): JsonObject {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema, { io: 'input' })
  return parameters as JsonObject
}

/**
 * What every target here holds a call to: exactly the given arguments leave, once. Nothing leaves where the contract says so, and what is
 * undoable keeps its versions.
 */
export function constraintsOf({ egress, undoable }: ToolContract): ReadonlySet<Constraint> {
  const held: Constraint[] = ['exact_arguments', 'single_use']
  if (egress === 'none') held.push('no_egress')
  if (undoable) held.push('undoable')
  return new Set(held)
}
