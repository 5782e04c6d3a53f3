import { createHash } from 'node:crypto'

/** One step up from a leaf to the root: the neighbour's hash and the side on which it stands. */
export type MerkleStep = { side: 'left' | 'right'; hash: Uint8Array }

/** Hash of a leaf; leaves and inner nodes are told apart by their first byte, as in RFC 6962. */
export function leafHash(leaf: string): Uint8Array {
  return createHash('sha256').update(Uint8Array.of(0)).update(leaf, 'utf8').digest()
}

function innerHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return createHash('sha256').update(Uint8Array.of(1)).update(left).update(right).digest()
}

/**
 * The Merkle root over a list of any length (RFC 6962), taken leaf by leaf: what is kept grows with the logarithm of the list. A digest of
 * the whole ordered list that also proves single entries without showing the others.
 */
export class MerkleRoot {
  /** Roots of complete subtrees, the largest first, with their numbers of leaves. */
  readonly #roots: { hash: Uint8Array; leaves: number }[] = []
  #leaves = 0

  get leaves(): number {
    return this.#leaves
  }

  add(leaf: string): void {
    this.#leaves += 1
    let node = { hash: leafHash(leaf), leaves: 1 }
    for (let last = this.#roots.at(-1); last?.leaves === node.leaves; last = this.#roots.at(-1)) {
      node = { hash: innerHash(last.hash, node.hash), leaves: node.leaves * 2 }
      this.#roots.pop()
    }
    this.#roots.push(node)
  }

  /** Of an empty list: the hash of nothing. */
  root(): Uint8Array {
    const [last, ...before] = this.#roots.toReversed()
    if (!last) return createHash('sha256').digest()
    return before.reduce((hash, larger) => innerHash(larger.hash, hash), last.hash)
  }
}

/** The steps from one leaf to the root, given every leaf's hash. Throws RangeError where there is no such leaf. */
export function merklePath(leaves: readonly Uint8Array[], index: number): MerkleStep[] {
  if (!Number.isInteger(index) || index < 0 || index >= leaves.length) throw new RangeError(`there is no leaf ${index}`)
  if (leaves.length === 1) return []
  const left = largestPowerBelow(leaves.length)
  return index < left
    ? [...merklePath(leaves.slice(0, left), index), { side: 'right', hash: rootOf(leaves.slice(left)) }]
    : [...merklePath(leaves.slice(left), index - left), { side: 'left', hash: rootOf(leaves.slice(0, left)) }]
}

/** The root that a leaf and its steps lead to. */
export function rootFrom(leaf: Uint8Array, path: readonly MerkleStep[]): Uint8Array {
  return path.reduce((hash, step) => (step.side === 'left' ? innerHash(step.hash, hash) : innerHash(hash, step.hash)), leaf)
}

function rootOf(leaves: readonly Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (leaves.length === 1 && only) return only
  const left = largestPowerBelow(leaves.length)
  return innerHash(rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)))
}

function largestPowerBelow(count: number): number {
  let power = 1
  while (power * 2 < count) power *= 2
  return power
}
