/** A cancel reaches a run that stops to wait, or waits already, whatever it waits for (spec/2 "Run loop"; cases E11, E12). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ApprovalView, RunAccepted, RunView } from '#contracts'
import { commandUndriven } from '#runtime/turn/undriven-run'
import { brought, fakeContract, fakeTools, happening } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { closeWhole } from '../support/replays.ts'
import { answer, ask, call, eventually, runEnded } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { asked, cancel, run, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const tools = fakeTools(
  fakeContract('diary.write', { capability: 'reversible_local', consequence: 'lasting', undoable: true }),
  fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared', priceMicros: 10 }),
)
let world: World

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue } })
})
afterAll(() => closeWhole(world))
afterEach(() => {
  world.upstream.unscript()
  for (const tool of tools.tools.values()) tool.lookUp = () => null
  Reflect.deleteProperty(world.system.system.conversation.host.suspender, 'suspend')
})

function tool(name: string): FakeTool {
  const found = tools.tools.get(name)
  if (!found) throw new Error(`no tool ${name}`)
  return found
}

const ableTree = () => treeWithTools(world.system, [...tools.tools.keys()])
const cancelled = { state: 'interrupted', reason: 'cancelled', cancelling: false }
const doing = (name: string) => calling([{ name, arguments: '{"text":"x"}' }], 'A moment. ')

/** The next run that stops to wait is cancelled after the loop has decided that, and before it is written. */
function cancelledOnStopping(): Promise<void> {
  const { suspender } = world.system.system.conversation.host
  const suspend = suspender.suspend.bind(suspender)
  return new Promise((resolve) => {
    suspender.suspend = async (input) => {
      Reflect.deleteProperty(suspender, 'suspend')
      expect((await cancel(world, input.run.id)).run).toMatchObject({ state: 'running', cancelling: true })
      resolve()
      return suspend(input)
    }
  })
}

async function endsCancelled(accepted: RunAccepted): Promise<void> {
  expect(await runEnded(world.system, accepted.run_id)).toMatchObject(cancelled)
  const effects = await world.system.system.database.query<{ state: string; code: string }>(
    'SELECT state, code FROM effects WHERE run_id = $1::uuid',
    [accepted.run_id],
  )
  for (const effect of effects) expect(effect).toEqual({ state: 'failed', code: 'cancelled' })
  // Nothing of it stands in the way of another answer.
  world.upstream.script(answer('Another one.'))
  const again = await call<RunAccepted>(world.system, 'POST', `/v1/nodes/${accepted.question_id}/regenerate`, {})
  expect(await runEnded(world.system, again.run_id)).toMatchObject({ state: 'finished' })
}

describe('a cancel that meets a run as it stops to wait', () => {
  it('for its owner’s answer ends it, and asks nothing', async () => {
    const tree = await ableTree()
    const before = tool('mail.send').happened.length
    const met = cancelledOnStopping()
    const accepted = await asked(world, tree.id, 'Send it.', doing('mail_send'))
    await met
    await endsCancelled(accepted)
    const { items } = await call<{ items: ApprovalView[] }>(world.system, 'GET', '/v1/approvals')
    expect(items.filter(({ run_id: id }) => id === accepted.run_id)).toEqual([])
    expect(tool('mail.send').happened).toHaveLength(before)
  })

  it('for an action that is out ends it as soon as that is looked at, and sends nothing', async () => {
    const tree = await ableTree()
    const diary = tool('diary.write')
    const before = diary.happened.length
    diary.lookUp = () => ({ type: 'unavailable' })
    const met = cancelledOnStopping()
    const accepted = await asked(world, tree.id, 'Write it.', doing('diary_write'))
    await met
    await endsCancelled(accepted)
    expect(diary.happened).toHaveLength(before)
  })

  it('after an action, since its process leaves, keeps what that brought and ends it when it is taken up', async () => {
    const tree = await ableTree()
    const { seats } = world.system.system.conversation
    const diary = tool('diary.write')
    const before = diary.happened.length
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    const { promise: goOn, resolve: letGo } = Promise.withResolvers<void>()
    diary.script = [
      async (sent) => {
        reach()
        await goOn
        return happening(diary, brought('written'))(sent)
      },
    ]
    const accepted = await asked(world, tree.id, 'Write it.', doing('diary_write'))
    await reached
    const met = cancelledOnStopping()
    const stopped = seats.stop()
    letGo()
    await met
    await stopped
    await seats.start()
    expect(await runEnded(world.system, accepted.run_id)).toMatchObject(cancelled)
    expect(diary.happened).toHaveLength(before + 1)
    const told = await world.system.system.log.read(`run:${accepted.run_id}`, { types: ['tool.executed'] })
    expect(told.map(({ record }) => record.payload)).toMatchObject([{ status: 'done' }])
  })

  it('because its owner is lost ends it: nobody has to take it on first', async () => {
    const tree = await ableTree()
    const { host, seats, runStore } = world.system.system.conversation
    const diary = tool('diary.write')
    const { promise: reached, resolve } = Promise.withResolvers<void>()
    const { promise: goOn, resolve: letGo } = Promise.withResolvers<void>()
    diary.lookUp = async () => {
      resolve()
      await goOn
      return { type: 'unavailable' }
    }
    const accepted = await asked(world, tree.id, 'Write it.', doing('diary_write'))
    await reached
    await cancel(world, accepted.run_id)
    const row = await runStore.get(accepted.run_id)
    const taken = await runStore.takeOver(accepted.run_id, row?.fence ?? 0, host.clock.now().toISOString())
    if (!taken) throw new Error('the run could not be taken over')
    await commandUndriven({ run: taken, command: { tag: 'lease_expired' }, deps: host })
    letGo()
    await seats.tryStart(taken.character_id)
    await endsCancelled(accepted)
  })
})

describe('a run that waits for a target that cannot be asked', () => {
  /** A run that has been looked at so often that it is looked at but once in ten minutes. */
  async function lookedAtForLong(): Promise<RunAccepted> {
    const tree = await ableTree()
    const diary = tool('diary.write')
    diary.lookUp = () => ({ type: 'unavailable' })
    world.upstream.script(doing('diary_write'))
    const accepted = await ask(world.system, tree.id, 'Write it.')
    await eventually(async () => (await run(world, accepted.run_id)).reason === 'waiting_for_effect', 'the run waits for the target')
    await world.system.system.database.execute(
      `INSERT INTO checkpoints (id, owner_id, run_id, event_offset, reducer_version, state, spent_wall_ms)
       SELECT gen_random_uuid(), c.owner_id, c.run_id, c.event_offset + 1000 + n, c.reducer_version, c.state, c.spent_wall_ms
       FROM (SELECT * FROM checkpoints WHERE run_id = $1::uuid ORDER BY event_offset DESC LIMIT 1) c, generate_series(1, 45) n`,
      [accepted.run_id],
    )
    return accepted
  }

  it('ends at once when it is cancelled, however long nobody would look again', async () => {
    const before = tool('diary.write').happened.length
    const accepted = await lookedAtForLong()
    await cancel(world, accepted.run_id)
    await endsCancelled(accepted)
    expect(tool('diary.write').happened).toHaveLength(before)
  })

  it('ends although whoever took the cancel was gone before it did more than take it', async () => {
    const accepted = await lookedAtForLong()
    const { runStore, seats } = world.system.system.conversation
    await runStore.insertCommand({
      id: accepted.run_id,
      run_id: accepted.run_id,
      owner_id: world.system.ownerId,
      kind: 'cancel',
      content_id: null,
    })
    await seats.sweep()
    await endsCancelled(accepted)
  })

  it('is looked at again after any number of looks, and does once what it waited to do', async () => {
    const diary = tool('diary.write')
    const before = diary.happened.length
    const accepted = await lookedAtForLong()
    const { runStore, seats } = world.system.system.conversation
    expect((await runStore.waitingForEffect(100)).map(({ id }) => id)).not.toContain(accepted.run_id)
    diary.lookUp = () => null
    diary.script = [happening(diary, brought('written'))]
    world.upstream.script(answer('Written.'))
    const waiting = await runStore.get(accepted.run_id)
    if (!waiting) throw new Error('the run is gone')
    await seats.requeue(waiting)
    expect(await runEnded(world.system, accepted.run_id)).toMatchObject({ state: 'finished' } satisfies Partial<RunView>)
    expect(diary.happened).toHaveLength(before + 1)
  })
})
