import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leafHash, merklePath, MerkleRoot, rootFrom } from './merkle.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

function rootOf(leaves: readonly string[]): string {
  const tree = new MerkleRoot()
  for (const leaf of leaves) tree.add(leaf)
  return hex(tree.root())
}

const lists = fc.array(fc.string(), { minLength: 1, maxLength: 70 })

describe('the Merkle root', () => {
  it('is that of RFC 6962', () => {
    const sha = (...parts: (string | Uint8Array)[]): Uint8Array =>
      createHash('sha256')
        .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
        .digest()
    const [a, b, c] = ['a', 'b', 'c'].map((leaf) => sha('\0', leaf)) as [Uint8Array, Uint8Array, Uint8Array]
    expect(rootOf(['a'])).toBe(hex(a))
    expect(rootOf(['a', 'b'])).toBe(hex(sha('\x01', a, b)))
    expect(rootOf(['a', 'b', 'c'])).toBe(hex(sha('\x01', sha('\x01', a, b), c)))
    expect(rootOf([])).toBe(hex(sha('')))
  })

  it('is reached from every leaf by its path, and from no other leaf', () => {
    fc.assert(
      fc.property(lists, fc.nat(), (leaves, at) => {
        const index = at % leaves.length
        const path = merklePath(leaves.map(leafHash), index)
        expect(hex(rootFrom(leafHash(leaves[index] ?? ''), path))).toBe(rootOf(leaves))
        expect(hex(rootFrom(leafHash(`${leaves[index]}.`), path))).not.toBe(rootOf(leaves))
      }),
    )
  })

  it('changes with every leaf, with their order and with their number', () => {
    fc.assert(
      fc.property(lists, fc.nat(), (leaves, at) => {
        const index = at % leaves.length
        const root = rootOf(leaves)
        expect(rootOf(leaves.with(index, `${leaves[index]}.`))).not.toBe(root)
        expect(rootOf(leaves.toSpliced(index, 1))).not.toBe(root)
        expect(rootOf([...leaves, leaves[0] ?? ''])).not.toBe(root)
        if (hex(leafHash(leaves[0] ?? '')) !== hex(leafHash(leaves.at(-1) ?? ''))) {
          expect(rootOf([leaves.at(-1) ?? '', ...leaves.slice(1, -1), leaves[0] ?? ''])).not.toBe(root)
        }
      }),
    )
  })

  it('has no path to a leaf that is not there', () => {
    for (const index of [-1, 2, 0.5]) expect(() => merklePath(['a', 'b'].map(leafHash), index)).toThrow(RangeError)
  })
})
