import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AdminRun, RunAccepted, TreeView } from '#contracts'
import { HOLD } from '../support/fake-upstream.ts'
import { answer, askAndHear, call, newTree, runEnded } from '../support/story.ts'
import { calling, grant } from '../support/tool-calls.ts'
import { asked, cancel, startWorld, steer } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* Decision 10: a short secret is found again from any digest of it whose salt is known, or that has none. What tells a text goes with it. */
vi.setConfig({ testTimeout: 120_000 })

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())
beforeEach(() => world.upstream.unscript())

const sql = <Row>(text: string, ...params: string[]): Promise<Row[]> => world.system.system.database.query<Row>(text, params)
const standing = (words: string): Promise<unknown[]> => sql(`SELECT body FROM contents WHERE body LIKE '%' || $1 || '%'`, words)
const remove = (nodeId: string): Promise<void> => call(world.system, 'DELETE', `/v1/nodes/${nodeId}`)

describe('the erasure of a message takes with it', () => {
  it('the hash by which a note made of it is compared; that it was noted stays known', async () => {
    const { system, upstream } = world
    const tree = await newTree(system)
    await grant(system, '/v1/grant')
    await grant(system, `/v1/characters/${tree.character_ids[0]}/grant`, { tools: ['notes.write'] })
    upstream.script(calling([{ name: 'notes_write', arguments: JSON.stringify({ text: 'Their PIN is 4821' }) }]), answer('Noted.'))
    const { accepted } = await askAndHear(system, tree.id, 'Keep my PIN, 4821.')
    const keys = () => sql<{ hash: string | null }>(`SELECT encode(arguments_hash, 'hex') AS hash FROM note_keys`)
    expect(await keys()).toEqual([{ hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string }])
    await expect(sql(`UPDATE note_keys SET arguments_hash = sha256('x')`)).rejects.toThrow(/only ever loses its hash/)
    await remove(accepted.candidate_id)
    await remove(accepted.question_id)
    expect(await standing('4821')).toEqual([])
    expect(await keys()).toEqual([{ hash: null }])
  })

  it('what was said while an answer was waited for that never came', async () => {
    const { system } = world
    const tree = await newTree(system)
    const run = await asked(world, tree.id, 'hello', { steps: [HOLD] })
    await steer(world, run.run_id, 'By the way, my PIN is 4821')
    await cancel(world, run.run_id)
    await runEnded(system, run.run_id)
    expect(await standing('By the way')).toHaveLength(1)
    await remove(run.question_id)
    expect(await standing('By the way')).toEqual([])
  })

  it('the title that only repeats how it began, and no other; nor does an admin see the titles of others (decision 35)', async () => {
    const { system, upstream } = world
    const titleOf = async (id: string): Promise<string> => (await call<TreeView>(system, 'GET', `/v1/trees/${id}`)).title
    const other = await system.system.identity.owners.create({ name: 'Another admin', role: 'admin', actor: 'system' })
    const otherToken = await system.tokenWith(['read', 'admin'], other.id)
    const kept: string[] = []
    for (const title of ['My PIN is 4821, please…', 'About the door']) {
      const tree = await newTree(system)
      upstream.script(answer('I hear you.'))
      const { accepted } = await askAndHear(system, tree.id, '**My PIN** is 4821, please remember it.')
      await call(system, 'PATCH', `/v1/trees/${tree.id}`, { title })
      const seenBy = async (token?: string) => {
        const page = await call<{ items: AdminRun[] }>(system, 'GET', '/v1/admin/runs?limit=100', undefined, { token })
        return page.items.find(({ id }) => id === accepted.run_id)?.tree_title
      }
      expect([await seenBy(), await seenBy(otherToken)]).toEqual([title, null])
      await remove(accepted.candidate_id)
      await remove(accepted.question_id)
      kept.push(await titleOf(tree.id))
    }
    expect(kept).toEqual(['', 'About the door'])
  })

  it('the hashes of requests; a repeated one is still known by its key', async () => {
    const { system, upstream } = world
    const tree = await newTree(system)
    upstream.script(answer('Hello.'))
    const headers = { 'idempotency-key': 'pin-1' }
    const again = (text: string): Promise<RunAccepted> =>
      call(system, 'POST', `/v1/trees/${tree.id}/runs`, { text }, { headers, status: 201 })
    const accepted = await again('4821')
    await runEnded(system, accepted.run_id)
    const kept = () =>
      sql<{ told: boolean }>(`SELECT salt IS NOT NULL OR body_hash IS NOT NULL AS told FROM idempotency_keys WHERE key = 'pin-1'`)
    expect(await kept()).toEqual([{ told: true }])
    await remove(accepted.question_id)
    expect(await kept()).toEqual([{ told: false }])
    expect((await again('4821')).run_id).toBe(accepted.run_id)
    expect(await sql('SELECT 1 FROM runs WHERE tree_id = $1::uuid', tree.id)).toHaveLength(1)
  })
})
