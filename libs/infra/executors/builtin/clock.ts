import { z } from 'zod'
import { utcOffsetMinutes } from '#domains/mirror-tree/context-sources'
import type { Clock } from '#kernel/ports/clock'
import { formatDate } from '#runtime/prompt/dates'
import { builtinTool, done, jsonObservation } from './builtin-tool.ts'
import type { BuiltinTool } from './builtin-tool.ts'
import type { FindPlace } from './place.ts'

/** `clock`: the application's time, in the zone of the run's tree; UTC where there is none. */
export function clockTool({ clock, findPlace }: { clock: Clock; findPlace: FindPlace }): BuiltinTool {
  const name = 'clock'
  return builtinTool({
    name,
    description: 'The present date and time where the user is, with the weekday and the time zone.',
    arguments: z.strictObject({}),
    act: async ({ ownerId, treeId }) => {
      const zone = (treeId === null ? null : await findPlace(ownerId, treeId))?.zone ?? 'UTC'
      const now = clock.now()
      const offset = utcOffsetMinutes(zone, now)
      const format = (pattern: string): string => formatDate(now.toISOString(), offset, pattern)
      const value = { now: format('YYYY-MM-DD[T]HH:mm:ssZ'), weekday: format('dddd'), zone }
      return done(jsonObservation({ tool: name, value, clock, trust: 'trusted' }))
    },
  })
}
