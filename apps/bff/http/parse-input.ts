import type { z } from 'zod'
import { LingtaiError } from '#contracts'
import { fieldPath } from './clean-input.ts'

/** Faults told in one answer; a hostile body could have any number. */
const MOST_FAULTS = 50

/** Parses what came in with its schema. Throws validation_failed with every faulty field, up to 50. */
export function parseInput<Schema extends z.ZodType>(schema: Schema, value: unknown, root = ''): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const errors = parsed.error.issues.flatMap((issue) => faultsOf(issue, root)).slice(0, MOST_FAULTS)
  throw new LingtaiError('validation_failed', undefined, { errors })
}

/** What is wrong with which field; of fields that nobody knows, each by itself. */
function faultsOf(issue: z.core.$ZodIssue, root: string): { path: string; message: string }[] {
  const { path, message } = issue
  if (issue.code !== 'unrecognized_keys') return [{ path: fieldPath(path, root), message }]
  return issue.keys.slice(0, MOST_FAULTS).map((key) => ({ path: fieldPath([...path, key], root).slice(0, 200), message: 'is not known' }))
}
