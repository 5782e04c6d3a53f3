import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { MemoryView, NodeView } from '#contracts'
import type { Restored } from '#infra/archive/archive'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { composeRecord } from '../../apps/bff/composition/compose-record.ts'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'
import { layFoundation } from '../../apps/bff/composition/foundation.ts'
import { HOLD, startFakeUpstream, textChunk } from '../support/fake-upstream.ts'
import type { FakeRequest } from '../support/fake-upstream.ts'
import { proposed } from '../support/memory-world.ts'
import { answer, askAndHear, call, eventually, newTree, runEnded } from '../support/story.ts'
import { openStore, startTestSystem } from '../support/system.ts'
import { asked, cancel, heard } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* Decision 6: what was erased after an archive was made stays erased where it is restored, with all that its deletion had taken along. */
vi.setConfig({ testTimeout: 240_000 })

let world: World
beforeAll(async () => {
  const upstream = await startFakeUpstream()
  const system = await startTestSystem({ model: upstream.baseUrl })
  world = { system, upstream, close: async () => (await system.close(), upstream.close()) }
})
afterAll(() => world.close())

/** The extraction's answer: one harmless memory of the first message that it was shown. */
const remembers = (request: FakeRequest) => {
  const body = JSON.parse(request.bodyText) as { messages: { content: string }[] }
  const shown = JSON.parse(body.messages[1]?.content ?? '{}') as { messages?: { id: string }[] }
  return answer(JSON.stringify(proposed(shown.messages?.[0]?.id ?? '', { content: 'The user likes tea.' })))
}

const archive = async (name: string): Promise<string> => {
  const file = join(world.system.system.config.home, name)
  await world.system.system.record.archive.out(file)
  return file
}

/** Restores with this home's ledger and begins to work; `before` looks at the database as the restore left it. */
async function restored<Found>(
  file: string,
  { before, after }: { before(answer: Restored, left: System['database']): Promise<void>; after(system: System): Promise<Found> },
): Promise<void> {
  await world.system.system.record.keepFiles()
  const store = await openStore('light')
  const parts = {
    config: loadConfig({ PORT: '0', LINGTAI_HOME: store.home, ...store.environment }),
    logger: createLogger('silent'),
    overrides: store.connection ? { connection: store.connection } : {},
  }
  const foundation = await layFoundation(parts)
  try {
    await before(await composeRecord(foundation).archive.in(file, world.system.system.record.ledger.path), foundation.database)
  } finally {
    await foundation.lifecycle.close()
  }
  const system = await composeSystem(parts)
  try {
    await system.lifecycle.startWork('all')
    await after(system)
    expect(await system.conversation.verify.verifyAll()).toMatchObject({ intact: true, faults: [] })
  } finally {
    await system.close()
    await store.close()
  }
}

describe('an answer that was being written when the archive was made, and was deleted later', () => {
  it('is not brought back, not even in its pieces', async () => {
    const { system } = world
    const tree = await newTree(system)
    const run = await asked(world, tree.id, 'tell me', {
      headers: { 'content-type': 'text/event-stream' },
      steps: [textChunk('The PIN is 4821. '), HOLD],
    })
    await heard(world, run.run_id, 'The PIN is 4821. ')
    const file = await archive('midway.jsonl')
    await cancel(world, run.run_id)
    await runEnded(system, run.run_id)
    await call(system, 'DELETE', `/v1/nodes/${run.candidate_id}`)
    await restored(file, {
      before: async (answer, left) => {
        expect(answer).toMatchObject({ report: { intact: true, faults: [] }, erased: 1 })
        expect(await left.query('SELECT 1 FROM segments')).toEqual([])
      },
      after: async ({ database }) => {
        const node = async () => {
          const [row] = await database.query<{ sealed: boolean; deleted: boolean; body: string | null; erased: boolean }>(
            `SELECT n.sealed, n.deleted_at IS NOT NULL AS deleted, c.body, c.erased_at IS NOT NULL AS erased
             FROM nodes n LEFT JOIN contents c ON c.id = n.content_id WHERE n.id = $1::uuid`,
            [run.candidate_id],
          )
          return row
        }
        await eventually(async () => (await node())?.sealed === true, 'the end of the run')
        expect(await node()).toEqual({ sealed: true, deleted: true, body: null, erased: true })
        const [tip] = await database.query<{ head: string }>('SELECT head_node_id AS head FROM trees WHERE id = $1::uuid', [tree.id])
        expect(tip?.head).toBe(run.question_id)
      },
    })
  })
})

describe('what was deleted after the archive was made', () => {
  it('is deleted again: the message, its place in the canon, the memory of it, which can be learned anew, and a whole tree', async () => {
    const { system, upstream } = world
    const tree = await newTree(system)
    upstream.script(answer('Noted.'))
    const { accepted } = await askAndHear(system, tree.id, 'I like tea.')
    upstream.script(remembers)
    await call(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
    const memories = async (): Promise<MemoryView[]> => (await call<{ items: MemoryView[] }>(system, 'GET', '/v1/memories')).items
    await eventually(async () => (await memories()).length > 0, 'a memory')
    upstream.unscript()
    const [memory] = await memories()
    const other = await newTree(system)
    upstream.script(answer('Nothing of this.'))
    const gone = await askAndHear(system, other.id, 'Forget all of this.')
    const file = await archive('before.jsonl')
    await call(system, 'DELETE', `/v1/memories/${memory?.id}`)
    await call(system, 'DELETE', `/v1/nodes/${accepted.question_id}?withdraw=true`)
    await call(system, 'DELETE', `/v1/trees/${other.id}`)
    await restored(file, {
      before: async ({ report, erased }) => {
        expect(report.faults).toEqual([])
        expect(erased).toBeGreaterThan(2)
      },
      after: async ({ conversation, memory: { memories: kept }, database }) => {
        const settled = async (): Promise<boolean> =>
          (await database.query(`SELECT 1 FROM outbox WHERE topic = 'archive.restored' AND outcome = 'done'`)).length === 1
        await eventually(settled, 'the deletions')
        expect(await kept.get(system.ownerId, memory?.id ?? '')).toMatchObject({ state: 'deleted', text: null })
        expect(await database.query('SELECT 1 FROM memories WHERE text_hash IS NOT NULL AND id = $1::uuid', [memory?.id ?? ''])).toEqual([])
        const node: NodeView = await conversation.paths.node(system.ownerId, accepted.question_id)
        expect(node).toMatchObject({ deleted: true })
        expect(await conversation.paths.canonizations(system.ownerId, tree.id)).toMatchObject([
          { withdrawn_at: expect.any(String) as string },
        ])
        await expect(conversation.trees.get(system.ownerId, other.id)).rejects.toThrow(/not_found|not found/i)
        await expect(conversation.paths.node(system.ownerId, gone.accepted.candidate_id)).rejects.toThrow()
      },
    })
  })
})
