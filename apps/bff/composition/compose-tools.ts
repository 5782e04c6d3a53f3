import { NotesService } from '#domains/tools/notes.service'
import { builtinTools } from '#infra/executors/builtin/index'
import { JoinedCatalogue } from '#infra/executors/catalogue'
import { NotesRepository } from '#infra/prisma/notes.repository'
import { RunRepository } from '#infra/prisma/run.repository'
import { TreeRepository } from '#infra/prisma/tree.repository'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import type { Memory } from './compose-memory.ts'
import type { Foundation } from './foundation.ts'

export type Tools = { catalogue: ToolCatalogue; notes: NotesService }

/** What tools there are and what they do (百工). Whether one may act is decided elsewhere. */
export function composeTools({ database, contents, clock, ids }: Foundation, memory: Pick<Memory, 'recalls'>): Tools {
  const notes = new NotesService({ unit: database, store: new NotesRepository(database), contents, clock, ids })
  const builtin = builtinTools({
    trees: new TreeRepository(database),
    runs: new RunRepository(database),
    recalls: memory.recalls,
    notes,
    clock,
    ids,
  })
  return { catalogue: new JoinedCatalogue({ builtin, others: [] }), notes }
}
