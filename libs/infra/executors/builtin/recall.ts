import { z } from 'zod'
import { meetTrust } from '#contracts'
import type { RecallService } from '#domains/memory/recall.service'
import type { Clock } from '#kernel/ports/clock'
import { failed } from '../observation.ts'
import { builtinTool, done, jsonObservation } from './builtin-tool.ts'
import type { BuiltinTool } from './builtin-tool.ts'
import type { FindPlace } from './place.ts'

/** Characters of all memories together in one answer, in UTF-16 units. */
const MAX_UNITS = 4_800

/** `recall`: a search of the character's own memories in the run's realm. Owner, character and realm are the run's, never arguments. */
export function recallTool({
  recalls,
  findPlace,
  clock,
}: {
  recalls: Pick<RecallService, 'recall'>
  findPlace: FindPlace
  clock: Clock
}): BuiltinTool {
  const name = 'recall'
  return builtinTool({
    name,
    description: 'Searches your own long-term memories by meaning and by words. Use it for what was said or agreed long ago.',
    arguments: z.strictObject({
      query: z.string().trim().min(1).max(2_000).describe('What to look for, in plain words.'),
      limit: z.int().min(1).max(20).default(8),
    }),
    act: async (call) => {
      const place = call.treeId === null ? null : await findPlace(call.ownerId, call.treeId)
      if (!place) return failed('no_realm')
      const { items } = await recalls.recall({
        owner_id: call.ownerId,
        character_id: call.characterId,
        realm_id: place.realmId,
        queries: [{ text: call.arguments.query, weight: 1 }],
        runId: call.runId,
        limits: { items: call.arguments.limit, characters: MAX_UNITS },
        ...(call.argumentsContentId === undefined ? {} : { queryContentIds: [call.argumentsContentId] }),
      })
      const memories = items.map(({ text, type, eventAt }) => ({ text, type, at: eventAt.toISOString() }))
      const trust = meetTrust(items.map((item) => item.trust))
      const derivedFrom = items.map(({ contentId }) => contentId)
      return done(jsonObservation({ tool: name, value: { memories }, clock, trust, derivedFrom }))
    },
  })
}
