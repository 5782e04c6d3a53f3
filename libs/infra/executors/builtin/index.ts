import type { RecallService } from '#domains/memory/recall.service'
import type { TreeStore } from '#domains/mirror-tree/ports'
import type { NotesService } from '#domains/tools/notes.service'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { RunStore } from '#kernel/ports/run-store'
import type { BuiltinTool } from './builtin-tool.ts'
import { clockTool } from './clock.ts'
import { delegateTool } from './delegate.ts'
import type { DelegationDesk } from './delegate.ts'
import { diceTool } from './dice.ts'
import { notesTools } from './notes.ts'
import type { FindPlace } from './place.ts'
import { recallTool } from './recall.ts'
import { recallOriginalTool } from './recall-original.ts'

export type BuiltinDeps = {
  trees: Pick<TreeStore, 'find' | 'node' | 'isAncestorOrSelf'>
  runs: Pick<RunStore, 'find'>
  recalls: Pick<RecallService, 'recall'>
  notes: NotesService
  desk: DelegationDesk
  clock: Clock
  ids: Pick<Ids, 'seed'>
}

/** Every tool that is part of Lingtai. */
export function builtinTools({ trees, runs, recalls, notes, desk, clock, ids }: BuiltinDeps): BuiltinTool[] {
  const findPlace: FindPlace = async (ownerId, treeId) => {
    const tree = await trees.find(ownerId, treeId)
    return tree && { realmId: tree.realm_id, zone: tree.zone }
  }
  return [
    clockTool({ clock, findPlace }),
    diceTool({ clock, ids }),
    recallTool({ recalls, findPlace, clock }),
    recallOriginalTool({ trees, runs, clock }),
    delegateTool({ desk, clock }),
    ...notesTools({ notes, findPlace, clock }),
  ]
}
