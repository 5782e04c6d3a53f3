/** Deterministic draws from a key: the same key draws the same numbers on every machine and for ever. */
export type Random = {
  /** A whole number from 0 to 2³² − 1. */
  next(): number
  /** A whole number from 0 to `bound` − 1, each as likely as the other; `bound` from 1 to 2³². */
  below(bound: number): number
}

const TWO_32 = 0x1_0000_0000

/** FNV-1a over UTF-16 units, from a start value; spreads a key into the generator's state. */
function hash32(key: string, start: number): number {
  let hash = start >>> 0
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193) >>> 0
  // Final mixing (murmur3), so that keys which differ in the last unit alone differ everywhere.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

const rotateLeft = (value: number, by: number): number => ((value << by) | (value >>> (32 - by))) >>> 0

/** xoshiro128** (Blackman and Vigna, public domain algorithm), seeded from a text key. */
export function createRandom(key: string): Random {
  let a = hash32(key, 0x811c9dc5)
  let b = hash32(key, 0x9e3779b9)
  let c = hash32(key, 0x7f4a7c15)
  // The state must not be all zero.
  let d = hash32(key, 0xd1b54a32) | 1

  const next = (): number => {
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotateLeft(d, 11)
    return result
  }

  return {
    next,
    below(bound) {
      // Draws above the largest multiple of the bound are thrown away: no value is favoured.
      const limit = TWO_32 - (TWO_32 % bound)
      let drawn = next()
      while (drawn >= limit) drawn = next()
      return drawn % bound
    },
  }
}
