import { createHash } from 'node:crypto'
import type { OfferedTool, ToolDeclaration } from '#domains/tools/ports'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { canonicalJson } from '#kernel/record/canonical-json'
import { isCanonical } from './safe-schema.ts'

/** Bytes of one tool's parameters as JSON. */
export const PARAMETERS_MAX_BYTES = 32 * 1024
export const DESCRIPTION_MAX_UNITS = 2_000
/** Longest name of a tool within its source, so that the whole name stays a slug. */
const NAME_MAX_UNITS = 34

/** The tool with the digest of everything that it is; null where something in it has no canonical form, so that no digest could bind it. */
export function offeredTool(name: string, declaration: ToolDeclaration): OfferedTool | null {
  if (!isCanonical(declaration)) return null
  return { name, declaration, version: createHash('sha256').update(canonicalJson(declaration)).digest('hex') }
}

/** A stranger's name for a tool as one of ours: other signs become `_`, a long one ends in a digest of the whole. */
export function localName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  if (plain !== '' && plain.length <= NAME_MAX_UNITS && plain === name) return plain
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8)
  return `${plain.slice(0, NAME_MAX_UNITS - 9)}-${digest}`
}

/** A stranger's description as text that hides nothing: no control or formatting characters, bounded. */
export function plainDescription(text: string): string {
  // Cc, Cf (bidirectional marks, zero-width signs, tags), private use and unassigned ones carry what a reader does not see.
  const seen = text
    .toWellFormed()
    .replaceAll(/[^\P{C}\n]/gu, ' ')
    .replaceAll(/[^\S\n]+/g, ' ')
  return seen
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
    .slice(0, DESCRIPTION_MAX_UNITS)
    .toWellFormed()
}

/** Whether parameters are a schema of an object that fits into what a model is shown. */
export function parametersProblem(parameters: JsonObject): 'parameters_no_object' | 'parameters_too_large' | null {
  if (parameters['type'] !== 'object') return 'parameters_no_object'
  return Buffer.byteLength(JSON.stringify(parameters)) > PARAMETERS_MAX_BYTES ? 'parameters_too_large' : null
}
