import type { Random } from './random.ts'

const FORMULA = /^(\d{1,4})?d(\d{1,9}|%)([+-]\d{1,9})?$/i
const MAX_DICE = 1000

/** Rolls `2d6+1`, `d20`, `d%` or plain sides (`6`): the total as text, null for what is no such formula or more than 1,000 dice. */
export function rollDice(formula: string, random: Random): string | null {
  const read = FORMULA.exec(/^\d{1,9}$/.test(formula) ? `1d${formula}` : formula)
  if (!read) return null
  const dice = Number(read[1] ?? 1)
  const sides = read[2] === '%' ? 100 : Number(read[2])
  if (dice < 1 || dice > MAX_DICE || sides < 1) return null
  let total = Number(read[3] ?? 0)
  for (let die = 0; die < dice; die++) total += random.below(sides) + 1
  return String(total)
}
