import type { AcceptanceCheck, CreateTask, FieldError } from '#contracts'
import type { ToolCatalogue, ToolContract } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { fitSchema } from '#kernel/tools/fit-schema'
import { promiseProblems } from '#kernel/tools/schema-faults'

/**
 * What of a task could never be held to: tools that its owner does not have, schemas that a check could not use or would pass over in part,
 * a looking tool that does more than look. Each with its place; empty for a task that can be kept (`003…` §2).
 */
export async function taskFaults(ownerId: string, given: CreateTask, catalogue: Pick<ToolCatalogue, 'find'>): Promise<FieldError[]> {
  const named = new Set([...given.tools, ...given.acceptance.checks.flatMap((check) => ('tool' in check ? [check.tool] : []))])
  const contracts = new Map<string, ToolContract | null>()
  for (const tool of named) contracts.set(tool, (await catalogue.find(ownerId, tool))?.contract ?? null)
  const contractOf = (tool: string): ToolContract | null => contracts.get(tool) ?? null
  return [
    ...given.tools.flatMap((tool, index) => (contractOf(tool) ? [] : [noSuchTool(`tools[${index}]`)])),
    ...given.acceptance.checks.flatMap((check, index) => checkFaults(check, `acceptance.checks[${index}]`, contractOf)),
  ]
}

function checkFaults(check: AcceptanceCheck, path: string, contractOf: (tool: string) => ToolContract | null): FieldError[] {
  switch (check.kind) {
    case 'model':
      return []
    case 'schema':
      return schemaFaults(check.schema, `${path}.schema`)
    case 'committed':
      return contractOf(check.tool) ? [] : [noSuchTool(`${path}.tool`)]
    case 'tool':
      return [...callFaults(check, path, contractOf(check.tool)), ...schemaFaults(check.expect, `${path}.expect`)]
  }
}

function callFaults(check: Extract<AcceptanceCheck, { kind: 'tool' }>, path: string, contract: ToolContract | null): FieldError[] {
  if (!contract) return [noSuchTool(`${path}.tool`)]
  if (contract.capability !== 'read_only') return [{ path: `${path}.tool`, message: 'must be a tool that only reads' }]
  return fitSchema(contract.parameters, check.arguments).map((fault) => ({
    path: fault.path === '$' ? `${path}.arguments` : `${path}.arguments.${fault.path}`,
    message: `must be ${fault.expected}`,
  }))
}

function schemaFaults(schema: JsonObject, root: string): FieldError[] {
  return promiseProblems(schema).map(({ path, message }) => ({
    path: path
      .reduce<string>((before, step) => (typeof step === 'number' ? `${before}[${step}]` : `${before}.${step}`), root)
      .slice(0, 200),
    message,
  }))
}

function noSuchTool(path: string): FieldError {
  return { path, message: 'must be a tool that you have' }
}
