import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GrantLayerRow, GrantStore } from '#kernel/ports/approval-store'
import { leastCost, shownName } from './granted-tools.ts'

const place = { owner_id: 'owner', character_id: 'character', tree_id: null }
const storeOf = (bounds: readonly (number | null)[]): GrantStore =>
  ({ layers: async () => bounds.map((max_cost_micros) => ({ max_cost_micros }) as GrantLayerRow) }) as unknown as GrantStore

describe('what a run may cost (K6)', () => {
  it('no layer of grants raises what a run may cost; the least bound counts, and none where nobody set one', async () => {
    const bound = fc.option(fc.nat({ max: 1_000 }), { nil: null })
    await fc.assert(
      fc.asyncProperty(fc.array(bound, { maxLength: 4 }), bound, async (layers, one) => {
        const before = await leastCost(storeOf(layers), place)
        const after = await leastCost(storeOf([...layers, one]), place)
        if (before !== null) expect(after).toBeLessThanOrEqual(before)
        const set = [...layers, one].filter((value) => value !== null)
        expect(after).toBe(set.length === 0 ? null : Math.min(...set))
      }),
    )
  })
})

describe('names of tools', () => {
  it('are shown in letters that providers take', () => {
    expect(shownName('mcp/files.read_file')).toBe('mcp_files_read_file')
  })
})
