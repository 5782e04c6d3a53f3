/** A yes is for one action with one version of its tool, and for as long as its question stood (spec/2 "Run loop"; cases E3, E5). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ApprovalView, RunStreamEvent, RunView } from '#contracts'
import type { ToolContract } from '#kernel/ports/effect-target'
import { HOLD, textChunk } from '../support/fake-upstream.ts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { MovedClock } from '../support/moved-clock.ts'
import { closeWhole } from '../support/replays.ts'
import { answer, ask, call, eventually, follow, newTree } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { asked, cancel, run, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const A_DAY = 24 * 60 * 60_000
const contract = fakeContract('mail.send', {
  capability: 'irreversible_external',
  consequence: 'lasting',
  egress: 'declared',
  priceMicros: 10,
})
const other: ToolContract = { ...contract, description: 'Another tool, at another address.', version: 'f'.repeat(64) }
const tools = fakeTools(contract)
const clock = new MovedClock()
let world: World

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue, clock } })
})
afterAll(() => closeWhole(world))
afterEach(() => {
  world.upstream.unscript()
  mail().contract = contract
  mail().lookUp = () => null
  mail().happened.length = 0
})

function mail(): FakeTool {
  const found = tools.tools.get('mail.send')
  if (!found) throw new Error('there is no such tool')
  return found
}

const sends = calling([{ name: 'mail_send', arguments: '{"text":"x"}' }], 'I will write. ')
const executed = (events: readonly RunStreamEvent[]) =>
  events.flatMap((event) => (event.type === 'tool.executed' ? [{ status: event.status, reason: event.reason }] : []))

async function waits(runId: string, reason: RunView['reason']): Promise<void> {
  await eventually(async () => (await run(world, runId)).reason === reason, `the run is ${reason}`)
}

/** A run that asks its owner, and the question. */
async function asking(): Promise<{ runId: string; approval: ApprovalView; characterId: string }> {
  const tree = await treeWithTools(world.system, ['mail.send'])
  world.upstream.script(sends)
  const { run_id: runId } = await ask(world.system, tree.id, 'Write to her.')
  await waits(runId, 'waiting_for_approval')
  const { items } = await call<{ items: ApprovalView[] }>(world.system, 'GET', '/v1/approvals?state=pending')
  const approval = items.find((item) => item.run_id === runId)
  if (!approval) throw new Error('nobody was asked')
  return { runId, approval, characterId: tree.character_ids[0] ?? '' }
}

const approve = ({ id, arguments_hash }: ApprovalView) =>
  call<ApprovalView>(world.system, 'POST', `/v1/approvals/${id}/decision`, { decision: 'approve', arguments_hash })

/** A run that was allowed to send, and waits since its target cannot be asked. */
async function allowedAndWaiting(): Promise<string> {
  const { runId, approval } = await asking()
  mail().lookUp = () => ({ type: 'unavailable' })
  world.upstream.script(answer('Well.'))
  await approve(approval)
  await waits(runId, 'waiting_for_effect')
  return runId
}

async function lookedAtAgain(runId: string): Promise<RunStreamEvent[]> {
  mail().lookUp = () => null
  const { runStore, seats } = world.system.system.conversation
  const row = await runStore.get(runId)
  if (row) await seats.requeue(row)
  return follow(world.system, runId)
}

describe('another version of a tool', () => {
  it('gets nothing of what was allowed to the one before it and not sent yet (case E5)', async () => {
    const runId = await allowedAndWaiting()
    mail().contract = other
    expect(executed(await lookedAtAgain(runId))).toEqual([{ status: 'denied', reason: 'tool_changed' }])
    expect(mail().happened).toEqual([])
  })

  it('is not what the owner was asked about', async () => {
    const { runId, approval } = await asking()
    mail().contract = other
    world.upstream.script(answer('Well.'))
    await approve(approval)
    expect(executed(await follow(world.system, runId))).toEqual([{ status: 'denied', reason: 'unknown_tool' }])
    expect(mail().happened).toEqual([])
  })

  it('cannot be bound to an intent that is there: the database says so', async () => {
    const runId = await allowedAndWaiting()
    const { database } = world.system.system
    const [row] = await database.query<{ tool_version: string }>('SELECT tool_version FROM effects WHERE run_id = $1::uuid', [runId])
    expect(row?.tool_version).toBe(contract.version)
    for (const version of [null, other.version]) {
      const change = database.execute('UPDATE effects SET tool_version = $2 WHERE run_id = $1::uuid', [runId, version])
      await expect(change).rejects.toThrow(/fixed/)
    }
    expect(executed(await lookedAtAgain(runId))).toEqual([{ status: 'done', reason: null }])
    expect(mail().happened).toHaveLength(1)
  })
})

describe('a yes whose time is over', () => {
  it('lets nothing out when its run is back too late', async () => {
    const { runId, approval, characterId } = await asking()
    // Somebody else has the seat meanwhile.
    const tree = await newTree(world.system)
    expect(tree.character_ids[0]).toBe(characterId)
    const holding = await asked(world, tree.id, 'Wait.', {
      headers: { 'content-type': 'text/event-stream' },
      steps: [textChunk('a'), HOLD],
    })
    await approve(approval)
    expect((await run(world, runId)).state).toBe('queued')
    clock.ahead += A_DAY + 60_000
    world.upstream.script(answer('Well.'))
    await cancel(world, holding.run_id)
    expect(executed(await follow(world.system, runId))).toEqual([{ status: 'denied', reason: 'approval_expired' }])
    expect(mail().happened).toEqual([])
  })

  it('lets nothing out that waited for its target for longer', async () => {
    const runId = await allowedAndWaiting()
    clock.ahead += A_DAY + 60_000
    expect(executed(await lookedAtAgain(runId))).toEqual([{ status: 'denied', reason: 'approval_expired' }])
    expect(mail().happened).toEqual([])
  })
})
