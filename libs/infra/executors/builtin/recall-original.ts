import { z } from 'zod'
import { Id } from '#contracts'
import type { TreeStore } from '#domains/mirror-tree/ports'
import type { Clock } from '#kernel/ports/clock'
import type { RunStore } from '#kernel/ports/run-store'
import { partsOf, textOf } from '#kernel/record/content-parts'
import { failed, storable } from '../observation.ts'
import { builtinTool, done, jsonObservation } from './builtin-tool.ts'
import type { BuiltinTool } from './builtin-tool.ts'

/** Most UTF-16 units of one answer. */
const MAX_UNITS = 16_000

/**
 * `recall_original`: what a message of the run's own path says, word for word. A message beside the path, in another tree or of another
 * owner is as unknown as one that never was (M6).
 */
export function recallOriginalTool({
  trees,
  runs,
  clock,
}: {
  trees: Pick<TreeStore, 'node' | 'isAncestorOrSelf'>
  runs: Pick<RunStore, 'find'>
  clock: Clock
}): BuiltinTool {
  const name = 'recall_original'
  return builtinTool({
    name,
    description: 'The exact words of an earlier message of this conversation, by its id. Long ones come in pieces: ask again from `to`.',
    arguments: z.strictObject({
      node_id: Id,
      from: z.int().min(0).default(0).describe('Where to begin, counted in characters.'),
      characters: z.int().min(1).max(MAX_UNITS).default(8_000),
    }),
    act: async ({ ownerId, runId, arguments: { node_id: nodeId, from, characters } }) => {
      const run = await runs.find(ownerId, runId)
      const leafId = run?.question_id ?? null
      const node = leafId === null ? null : await trees.node(ownerId, nodeId.toLowerCase())
      if (!node || leafId === null || node.tree_id !== run?.tree_id) return failed('not_on_path')
      if (!(await trees.isAncestorOrSelf(node.id, leafId))) return failed('not_on_path')
      if (node.deleted || node.body === null) return failed('message_gone')
      const text = textOf(partsOf(node))
      const to = wholeEnd(text, Math.min(text.length, from + characters))
      const value = {
        node_id: node.id,
        role: node.role,
        at: node.at.toISOString(),
        text: storable(text.slice(from, to)),
        from,
        to,
        characters: text.length,
      }
      return done(
        jsonObservation({ tool: name, value, clock, trust: node.trust, derivedFrom: node.content_id === null ? [] : [node.content_id] }),
      )
    },
  })
}

/** Moves an end that would halve a sign behind it. */
function wholeEnd(text: string, end: number): number {
  const before = text.charCodeAt(end - 1)
  return before >= 0xd800 && before <= 0xdbff && end < text.length ? end + 1 : end
}
