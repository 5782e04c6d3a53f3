import { z } from 'zod'
import type { Clock, Ids } from '#kernel/ports/clock'
import { createRandom } from '#runtime/prompt/random'
import { failed } from '../observation.ts'
import { builtinTool, done, jsonObservation } from './builtin-tool.ts'
import type { BuiltinTool } from './builtin-tool.ts'

const FORMULA = /^(\d{1,3})?d(\d{1,4})([+-]\d{1,5})?$/i
const MAX_DICE = 100
const MAX_SIDES = 1_000

export type Roll = { dice: number[]; total: number }

/** Rolls `2d6+1` or `d20`: up to 100 dice of 2 to 1,000 sides. The same seed rolls the same. Null for what is no such formula. */
export function roll(formula: string, seed: number): Roll | null {
  const read = FORMULA.exec(formula.replaceAll(/\s/g, ''))
  if (!read) return null
  const [count, sides, bonus] = [Number(read[1] ?? 1), Number(read[2]), Number(read[3] ?? 0)]
  if (count < 1 || count > MAX_DICE || sides < 2 || sides > MAX_SIDES) return null
  const random = createRandom(`dice:${seed}`)
  const dice = Array.from({ length: count }, () => random.below(sides) + 1)
  return { dice, total: dice.reduce((sum, face) => sum + face, bonus) }
}

/** `dice`: a fair draw; the seed is told, so that it can be drawn again. */
export function diceTool({ clock, ids }: { clock: Clock; ids: Pick<Ids, 'seed'> }): BuiltinTool {
  const name = 'dice'
  return builtinTool({
    name,
    description: 'Rolls dice fairly. The formula is like 2d6+1 or d20: up to 100 dice with 2 to 1000 sides each, and a number to add.',
    arguments: z.strictObject({ formula: z.string().max(32) }),
    act: async ({ arguments: { formula } }) => {
      const seed = ids.seed()
      const rolled = roll(formula, seed)
      if (!rolled) return failed('no_dice_formula')
      return done(jsonObservation({ tool: name, value: { formula, ...rolled, seed }, clock, trust: 'trusted' }))
    },
  })
}
