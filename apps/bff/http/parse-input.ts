import type { z } from 'zod'
import { LingtaiError } from '#contracts'
import { fieldPath } from './clean-input.ts'

/** Faults told in one answer; a hostile body could have any number. */
const MOST_FAULTS = 50

/** Parses what came in with its schema. Throws validation_failed with every faulty field, up to 50. */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown, root = ''): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const errors = parsed.error.issues.slice(0, MOST_FAULTS).map((issue) => ({ path: fieldPath(issue.path, root), message: issue.message }))
  throw new LingtaiError('validation_failed', undefined, { errors })
}
