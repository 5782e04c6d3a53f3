import type { GrantStore } from '#kernel/ports/approval-store'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { RunRow } from '#kernel/ports/run-store'
import type { ActionDeps } from './action-facts.ts'

/** A tool as it is shown to a model: providers take letters, digits, `_` and `-` in names. */
export function shownName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/** The smallest set of tools that this run may be shown: what exists and what every layer grants (spec/3 "baigong"). */
export async function shownTools(
  place: Pick<RunRow, 'owner_id' | 'character_id' | 'tree_id'>,
  deps: Pick<ActionDeps, 'catalogue' | 'grants'>,
): Promise<ToolContract[]> {
  const layers = await deps.grants.layers({ ownerId: place.owner_id, characterId: place.character_id, treeId: place.tree_id })
  // A character has the tools that were given to it by name, and none by default.
  const own = layers.find(({ scope }) => scope === 'character')?.tools ?? []
  if (own.length === 0) return []
  const taken = new Set<string>()
  return (await deps.catalogue.list(place.owner_id)).filter((contract) => {
    const isGranted = own.includes(contract.name) && layers.every(({ tools }) => tools === null || tools.includes(contract.name))
    const name = shownName(contract.name)
    if (!isGranted || taken.has(name)) return false
    taken.add(name)
    return true
  })
}

/** The least that any layer of grants lets a run cost, in micro-units; null where none bounds it (K6: only ever lowered). */
export async function leastCost(grants: GrantStore, run: Pick<RunRow, 'owner_id' | 'character_id' | 'tree_id'>): Promise<number | null> {
  const layers = await grants.layers({ ownerId: run.owner_id, characterId: run.character_id, treeId: run.tree_id })
  const bounds = layers.flatMap(({ max_cost_micros: bound }) => bound ?? [])
  return bounds.length === 0 ? null : Math.min(...bounds)
}
