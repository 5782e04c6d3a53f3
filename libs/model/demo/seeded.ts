import { createHash } from 'node:crypto'

/** Draws that follow from a text alone: the same request gives the same answer. */
export type Seeded = {
  /** In [0, 1). */
  next(): number
  chance(share: number): boolean
  pick<T>(from: readonly [T, ...T[]]): T
}

/** Seeds from any text; SplitMix-like steps over 32 bits. */
export const createSeeded = (text: string): Seeded => {
  let state = createHash('sha256').update(text).digest().readUInt32LE(0)
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0
    let value = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    value = Math.imul(value ^ (value >>> 15), 0x735a2d97)
    return ((value ^ (value >>> 15)) >>> 0) / 2 ** 32
  }
  return {
    next,
    chance: (share) => next() < share,
    pick: (from) => from[Math.floor(next() * from.length)] ?? from[0],
  }
}
