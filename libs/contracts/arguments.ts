import { z } from 'zod'

/** Faults that are told of one value. */
const MAX_TOLD = 8

/**
 * What a tool is given: an object of JSON in which every number survives its reader (decision 8). Larger whole numbers are written as text;
 * a parser has rounded them before anybody here sees them.
 */
export const Arguments = z.record(z.string().max(200), z.json()).superRefine((given, context) => {
  for (const path of unsafeNumbers(given).slice(0, MAX_TOLD)) {
    context.addIssue({ code: 'custom', path, message: 'must be within ±(2^53 - 1), where it is a whole number; write larger ones as text' })
  }
})

function unsafeNumbers(value: unknown): PropertyKey[][] {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? [[]] : []
  if (typeof value !== 'object' || value === null) return []
  const members: [PropertyKey, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return members.flatMap(([step, member]) => unsafeNumbers(member).map((path) => [step, ...path]))
}
