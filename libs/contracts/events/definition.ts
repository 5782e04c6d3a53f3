import { z } from 'zod'
import type { Visibility } from '../enums.ts'

/** A number of things. */
export const count = z.int().min(0)

/** What the dictionary says of one event type. */
export type EventDefinition = {
  version: number
  visibility: Visibility
  stream: 'run' | 'tree' | 'character' | 'memory' | 'confirmation' | 'admin' | 'task' | 'embedding'
  /** Another kind of stream that it stands on too. */
  alsoOn?: 'embedding'
  reserved?: boolean
  payload: z.ZodObject
}
