import { meetTrust } from '#contracts'
import type { EventPayload, EventRecord, Trust } from '#contracts'

/** The meet of everything that the model saw in a run; null where it saw nothing yet (K1). */
export function contextTrust(records: readonly EventRecord[]): Trust | null {
  const seen = records.flatMap((record) =>
    record.type === 'context.projected' ? [(record.payload as EventPayload<'context.projected'>).trust] : [],
  )
  return seen.length === 0 ? null : meetTrust(seen)
}
