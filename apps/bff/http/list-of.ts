import { z } from 'zod'

/** An answer that lists all there is. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item) })
}
