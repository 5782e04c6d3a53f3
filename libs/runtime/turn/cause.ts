import type { Cause } from '#contracts'
import type { RunCommand } from '#kernel/reducer/commands'

/** Keys whose values stand in the event's own payload, or would repeat on every delta. */
const inPayload = new Set([
  'tag',
  'projection',
  'content_digests',
  'segments',
  'content_id',
  'digest',
  'persona_version_id',
  'profile_hash',
  'calls',
  'facts',
  'observation',
  'inherited',
  'veto',
])
const slug = /^[A-Za-z0-9_.:/-]{1,64}$/

/** The command that caused an event, as its record keeps it: tag and readings (decision 15). */
export function causeOf(command: RunCommand): Cause {
  const readings: NonNullable<Cause['readings']> = {}
  for (const [key, value] of Object.entries(command)) {
    if (!inPayload.has(key)) note(readings, key, value)
  }
  return Object.keys(readings).length === 0 ? { tag: command.tag } : { tag: command.tag, readings }
}

function note(readings: NonNullable<Cause['readings']>, key: string, value: unknown): void {
  if (typeof value === 'number' || typeof value === 'boolean') readings[key] = value
  else if (typeof value === 'string' && slug.test(value)) readings[key] = value
  else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [inner, innerValue] of Object.entries(value)) note(readings, `${key}.${inner}`, innerValue)
  }
}
