/** Two servers, one database: the kill switch is set through one and holds on both (K8). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Problem } from '#contracts'
import { answer, ask, call, follow, newTree, node, spoken } from '../support/story.ts'
import { createGate, HOLD, textChunk } from '../support/fake-upstream.ts'
import { heard, startTwoReplicas } from '../support/two-replicas.ts'
import type { TwoReplicas } from '../support/two-replicas.ts'

/** The id of everything. */
const GLOBAL = '00000000-0000-0000-0000-000000000000'
let two: TwoReplicas
let admin: string
beforeAll(async () => {
  two = await startTwoReplicas({ role: 'bff' })
  const { firstOwner, identity } = two.observer
  const scopes = ['read', 'admin'] as const
  const made = await identity.tokens.create({ ownerId: firstOwner.id, name: 'kill', scopes, grantable: new Set(scopes), actor: 'operator' })
  admin = made.token ?? ''
})
afterAll(() => two.close())
beforeEach(() => two.prepare())
afterEach(() => two.settle())

describe('the kill switch', () => {
  it.each(['global', 'owner', 'character'] as const)(
    'set through one replica stops what runs on the other, at its next word: %s',
    async (scope) => {
      const [replica] = two.both
      const tree = await newTree(replica)
      const gate = createGate()
      two.upstream.script({ steps: [textChunk('What I said'), gate, textChunk(' and no more'), HOLD] })
      const before = two.upstream.requests.length
      const accepted = await ask(replica, tree.id, 'Speak.')
      const request = await two.upstream.request(before)
      await heard(replica, accepted.run_id, 'What I said')
      const { host, other } = await two.hostOf(accepted.run_id)
      const row = await two.rowOf(accepted.run_id)
      const place = { global: `/global/${GLOBAL}`, owner: `/owner/${row.owner_id}`, character: `/character/${row.character_id}` }[scope]
      const kill = `/v1/admin/kill${place}`
      expect((await other.call('PUT', kill, { token: admin })).status).toBeLessThan(300)
      gate.open()
      const events = await follow(host, accepted.run_id)
      expect(events.at(-1)).toMatchObject({ type: 'run.failed', code: 'killed', partial: true })
      expect(spoken(events)).toBe('What I said')
      expect(await request.closed).toBe(true)
      expect(await node(host, accepted.candidate_id)).toMatchObject({ text: 'What I said', sealed: true, partial: true })
      for (const one of two.both) {
        const refused = await call<Problem>(one, 'POST', `/v1/trees/${tree.id}/runs`, { text: 'x' }, { status: 423 })
        expect(refused.code).toBe('killed')
      }
      expect((await other.call('DELETE', kill, { token: admin })).status).toBeLessThan(300)
      two.upstream.script(answer('Free.'))
      const free = await ask(host, (await newTree(host)).id, 'And now?')
      expect(spoken(await follow(host, free.run_id))).toBe('Free.')
    },
  )
})
