/**
 * The owner of a run is lost in the middle of acting: another takes the run on from its record; what was out is read back and never sent
 * twice (spec/2 "Run loop", `003…` §4; cases E7–E9, E12, E20).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ApprovalView, EffectView, Problem, RunStreamEvent, RunView, TreeView } from '#contracts'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import { brought, fakeContract, fakeTools, happening, happens, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { otherReplica } from '../support/other-replica.ts'
import type { OtherReplica } from '../support/other-replica.ts'
import { closeWhole } from '../support/replays.ts'
import { answer, ask, call, eventually, follow, node, runEnded, spoken } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { cancel, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const tools = fakeTools(
  fakeContract('look.up', { priceMicros: 7 }),
  fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared', priceMicros: 10 }),
)
let world: World
let other: OtherReplica
/** Calls that a lost owner still has in hand. */
const hanging: (() => void)[] = []

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue } })
  other = otherReplica(world.system)
})
afterAll(() => closeWhole(world))
afterEach(async () => {
  for (const letGo of hanging.splice(0)) letGo()
  for (const tool of tools.tools.values()) tool.lookUp = () => null
  world.upstream.unscript()
  await eventually(() => Promise.resolve(world.system.system.conversation.seats.liveRuns === 0), 'rest')
})

function tool(name: string): FakeTool {
  const found = tools.tools.get(name)
  if (!found) throw new Error(`no tool ${name}`)
  return found
}

const ableTree = (): Promise<TreeView> => treeWithTools(world.system, [...tools.tools.keys()])

const view = (runId: string): Promise<RunView> => call<RunView>(world.system, 'GET', `/v1/runs/${runId}`)

/** The target gets the call, and its sender hears nothing of it until the story is over. */
function hangs(what: (call: EffectCall) => void = () => undefined): { reached: Promise<EffectCall>; step: FakeTool['script'][number] } {
  const reached = Promise.withResolvers<EffectCall>()
  return {
    reached: reached.promise,
    step: (sent) => {
      what(sent)
      reached.resolve(sent)
      return new Promise<EffectOutcome>((resolve) => {
        hanging.push(() => resolve(brought('too late')))
      })
    },
  }
}

const sends = [{ name: 'mail_send', arguments: '{"text":"come home"}' }]
const looks = [{ name: 'look_up', arguments: '{"text":"door"}' }]

async function question(runId: string): Promise<ApprovalView> {
  return eventually(async () => {
    const page = await call<{ items: ApprovalView[] }>(world.system, 'GET', '/v1/approvals?state=pending')
    return page.items.find((item) => item.run_id === runId)
  }, 'a question')
}

const decide = (approval: ApprovalView, decision: 'approve' | 'refuse', status = 200) =>
  call<ApprovalView & Problem>(
    world.system,
    'POST',
    `/v1/approvals/${approval.id}/decision`,
    { decision, arguments_hash: approval.arguments_hash },
    { status },
  )

const executed = (events: readonly RunStreamEvent[]) =>
  events.flatMap((event) => (event.type === 'tool.executed' ? [[event.tool, event.status, event.reason]] : []))

const waits = (runId: string, reason: string) =>
  eventually(async () => {
    const run = await view(runId)
    return run.state === 'suspended' && run.reason === reason
  }, `the run waits: ${reason}`)

async function effectsOf(runId: string) {
  return world.system.system.database.query<{ state: string; cost_micros: number | null }>(
    'SELECT state, cost_micros FROM effects WHERE run_id = $1::uuid ORDER BY created_at',
    [runId],
  )
}

describe('an owner that is lost while an action is out', () => {
  it('whose target can prove it: read back, and the answer goes on with what it brought', async () => {
    const tree = await ableTree()
    const looked = tool('look.up')
    const before = looked.happened.length
    const out = hangs((sent) => happens(looked, sent))
    looked.script = [out.step]
    looked.lookUp = ({ argumentsHash }) =>
      looked.happened.length > before ? { type: 'committed', argumentsHash, observation: seen('The third door.') } : null
    world.upstream.script(calling(looks, 'Let me see. '), answer('It is the third.'))
    const accepted = await ask(world.system, tree.id, 'Which door?')
    await out.reached
    await other.losesOwner(accepted.run_id)
    expect(await view(accepted.run_id)).toMatchObject({ state: 'suspended', reason: 'waiting_for_effect' })
    await other.looksAgain(accepted.run_id)
    const events = await follow(world.system, accepted.run_id)
    expect(spoken(events)).toBe('Let me see. It is the third.')
    expect(executed(events)).toEqual([['look.up', 'done', null]])
    expect(looked.happened).toHaveLength(before + 1)
    expect(await effectsOf(accepted.run_id)).toEqual([{ state: 'done', cost_micros: 7 }])
    expect(await node(world.system, accepted.candidate_id)).toMatchObject({ sealed: true, partial: false })
    // What its first owner still says of it is late, and changes nothing.
    const length = (await world.system.system.log.head(`run:${accepted.run_id}`))?.seq
    for (const letGo of hanging.splice(0)) letGo()
    await eventually(() => Promise.resolve(world.system.system.conversation.seats.liveRuns === 0), 'the first owner to stop')
    expect((await world.system.system.log.head(`run:${accepted.run_id}`))?.seq).toBe(length)
  })

  it('that left nothing behind and of which nobody knows: given up, charged, and told so', async () => {
    const tree = await ableTree()
    const looked = tool('look.up')
    const out = hangs()
    looked.script = [out.step]
    world.upstream.script(calling(looks), answer('I could not see.'))
    const accepted = await ask(world.system, tree.id, 'Which door?')
    await out.reached
    await other.losesOwner(accepted.run_id)
    await other.looksAgain(accepted.run_id)
    const events = await follow(world.system, accepted.run_id)
    expect(spoken(events)).toBe('I could not see.')
    expect(executed(events)).toEqual([['look.up', 'unknown', 'owner_lost']])
    expect(await effectsOf(accepted.run_id)).toEqual([{ state: 'abandoned', cost_micros: 7 }])
  })

  it('that lasts and of which nobody knows: waits for a person, and then goes on with their word', async () => {
    const tree = await ableTree()
    const mail = tool('mail.send')
    const before = mail.happened.length
    const out = hangs((sent) => happens(mail, sent))
    mail.script = [out.step]
    world.upstream.script(calling(sends), answer('It is on its way.'))
    const accepted = await ask(world.system, tree.id, 'Write to her.')
    await decide(await question(accepted.run_id), 'approve')
    await out.reached
    await other.losesOwner(accepted.run_id)
    await other.looksAgain(accepted.run_id)
    await waits(accepted.run_id, 'reconcile_required')
    // Asked for once more by nobody: it stays so.
    await other.looksAgain(accepted.run_id)
    await waits(accepted.run_id, 'reconcile_required')
    const { items } = await call<{ items: EffectView[] }>(world.system, 'GET', '/v1/effects')
    const effect = items.find((item) => item.run_id === accepted.run_id)
    expect(effect).toMatchObject({ state: 'unknown', code: 'owner_lost' })
    await call(world.system, 'POST', `/v1/effects/${effect?.id}/reconcile`, { as: 'done' })
    const events = await follow(world.system, accepted.run_id)
    expect(spoken(events)).toBe('It is on its way.')
    expect(executed(events)).toEqual([['mail.send', 'done', null]])
    expect(mail.happened).toHaveLength(before + 1)
    expect(events.filter(({ type }) => type === 'run.finished')).toHaveLength(1)
  })

  it('in a run that somebody cancelled meanwhile: read back first, kept, and then the run ends (case E12)', async () => {
    const tree = await ableTree()
    const mail = tool('mail.send')
    const before = mail.happened.length
    const out = hangs((sent) => happens(mail, sent))
    mail.script = [out.step]
    mail.lookUp = ({ argumentsHash }) =>
      mail.happened.length > before ? { type: 'committed', argumentsHash, observation: seen('sent') } : null
    world.upstream.script(calling(sends, 'A moment. '))
    const accepted = await ask(world.system, tree.id, 'Write to her.')
    await decide(await question(accepted.run_id), 'approve')
    await out.reached
    await other.losesOwner(accepted.run_id)
    // Whoever takes it up looks at once.
    await cancel(world, accepted.run_id)
    expect(await runEnded(world.system, accepted.run_id)).toMatchObject({ state: 'interrupted', reason: 'cancelled', cancelling: false })
    expect(executed(await follow(world.system, accepted.run_id))).toEqual([['mail.send', 'done', null]])
    expect(mail.happened).toHaveLength(before + 1)
  })
})

describe('an owner that is lost before anything went out', () => {
  it('between its intent and its sending: sent once, by the next owner', async () => {
    const tree = await ableTree()
    const mail = tool('mail.send')
    const before = mail.happened.length
    mail.script = [happening(mail, brought('sent'))]
    const asked = Promise.withResolvers<void>()
    let looksSoFar = 0
    mail.lookUp = () => {
      looksSoFar += 1
      if (looksSoFar > 1) return null
      asked.resolve()
      return new Promise((resolve) => hanging.push(() => resolve(null)))
    }
    world.upstream.script(calling(sends), answer('Sent.'))
    const accepted = await ask(world.system, tree.id, 'Write to her.')
    await decide(await question(accepted.run_id), 'approve')
    await asked.promise
    await other.losesOwner(accepted.run_id)
    await other.looksAgain(accepted.run_id)
    expect(spoken(await follow(world.system, accepted.run_id))).toBe('Sent.')
    for (const letGo of hanging.splice(0)) letGo()
    await eventually(() => Promise.resolve(world.system.system.conversation.seats.liveRuns === 0), 'the first owner to stop')
    expect(mail.happened).toHaveLength(before + 1)
    expect(await effectsOf(accepted.run_id)).toEqual([{ state: 'done', cost_micros: 10 }])
  })

  it('right after the owner’s yes: the yes still serves, once', async () => {
    const tree = await ableTree()
    const mail = tool('mail.send')
    const before = mail.happened.length
    mail.script = [happening(mail, brought('sent'))]
    world.upstream.script(calling(sends), answer('Sent.'))
    const accepted = await ask(world.system, tree.id, 'Write to her.')
    const approval = await question(accepted.run_id)
    const { seats, runStore } = world.system.system.conversation
    // Whoever takes the run now is gone before it writes a word.
    seats.wake = () => undefined
    try {
      await decide(approval, 'approve')
      const taken = await world.system.system.database.run(() => runStore.claimNext(approval.character_id, 'a-dead-one'))
      expect(taken?.id).toBe(accepted.run_id)
    } finally {
      Reflect.deleteProperty(seats, 'wake')
    }
    await other.losesOwner(accepted.run_id)
    expect(await view(accepted.run_id)).toMatchObject({ state: 'suspended', reason: 'waiting_for_effect' })
    await other.looksAgain(accepted.run_id)
    const events = await follow(world.system, accepted.run_id)
    expect(spoken(events)).toBe('Sent.')
    expect(executed(events)).toEqual([['mail.send', 'done', null]])
    expect(mail.happened).toHaveLength(before + 1)
    expect((await call<ApprovalView>(world.system, 'GET', `/v1/approvals/${approval.id}`)).state).toBe('used')
  })

  it('before it asked the model: the next owner asks it', async () => {
    const tree = await ableTree()
    const { projector } = world.system.system.conversation
    const project = projector.project.bind(projector)
    const reached = Promise.withResolvers<void>()
    projector.project = (input) => {
      Reflect.deleteProperty(projector, 'project')
      reached.resolve()
      return new Promise((resolve, reject) => hanging.push(() => void project(input).then(resolve, reject)))
    }
    world.upstream.script(answer('Here I am.'))
    const accepted = await ask(world.system, tree.id, 'Are you there?')
    await reached.promise
    await other.losesOwner(accepted.run_id)
    await other.looksAgain(accepted.run_id)
    expect(spoken(await follow(world.system, accepted.run_id))).toBe('Here I am.')
  })

  it('twice: it goes on all the same, and its time at work is counted', async () => {
    const tree = await ableTree()
    const looked = tool('look.up')
    const before = looked.happened.length
    const [first, second] = [hangs(), hangs((sent) => happens(looked, sent))]
    looked.script = [first.step, second.step]
    world.upstream.script(calling([...looks, ...looks]), answer('Once.'))
    const accepted = await ask(world.system, tree.id, 'Which door?')
    for (const { reached } of [first, second]) {
      await reached
      await other.losesOwner(accepted.run_id)
      await other.looksAgain(accepted.run_id)
    }
    const events = await follow(world.system, accepted.run_id)
    expect(spoken(events)).toBe('Once.')
    expect(executed(events)).toEqual([
      ['look.up', 'unknown', 'owner_lost'],
      ['look.up', 'unknown', 'owner_lost'],
    ])
    expect(looked.happened).toHaveLength(before + 1)
    const checkpoints = await world.system.system.database.query<{ spent_wall_ms: number }>(
      'SELECT spent_wall_ms FROM checkpoints WHERE run_id = $1::uuid ORDER BY event_offset',
      [accepted.run_id],
    )
    const spent = checkpoints.map(({ spent_wall_ms: milliseconds }) => milliseconds)
    expect(spent).toHaveLength(2)
    expect(spent[0]).toBeGreaterThan(0)
    expect(spent[1]).toBeGreaterThan(spent[0] ?? 0)
  })
})

describe('the kill switch while a question is open', () => {
  it('takes no yes; lifted, the question is still there', async () => {
    const tree = await ableTree()
    const mail = tool('mail.send')
    const before = mail.happened.length
    mail.script = [happening(mail, brought('sent'))]
    world.upstream.script(calling(sends), answer('Sent.'))
    const accepted = await ask(world.system, tree.id, 'Write to her.')
    const approval = await question(accepted.run_id)
    const kill = `/v1/admin/kill/character/${approval.character_id}`
    await call(world.system, 'PUT', kill)
    try {
      expect((await decide(approval, 'approve', 423)).code).toBe('killed')
      expect((await view(accepted.run_id)).state).toBe('suspended')
      expect(mail.happened).toHaveLength(before)
    } finally {
      await call(world.system, 'DELETE', kill)
    }
    await decide(approval, 'approve')
    expect(spoken(await follow(world.system, accepted.run_id))).toBe('Sent.')
    expect(mail.happened).toHaveLength(before + 1)
  })

  it('ends a run that has its yes already, at once, and nothing happens', async () => {
    const tree = await ableTree()
    const before = tool('mail.send').happened.length
    world.upstream.script(calling(sends, 'A moment. '))
    const accepted = await ask(world.system, tree.id, 'Write to her.')
    const approval = await question(accepted.run_id)
    const kill = `/v1/admin/kill/character/${approval.character_id}`
    const { seats } = world.system.system.conversation
    seats.wake = () => undefined
    try {
      await decide(approval, 'approve')
      await call(world.system, 'PUT', kill)
      Reflect.deleteProperty(seats, 'wake')
      seats.wake(approval.character_id)
      expect(await runEnded(world.system, accepted.run_id)).toMatchObject({ state: 'failed', reason: 'killed' })
    } finally {
      Reflect.deleteProperty(seats, 'wake')
      await call(world.system, 'DELETE', kill)
    }
    expect(tool('mail.send').happened).toHaveLength(before)
    expect((await call<ApprovalView>(world.system, 'GET', `/v1/approvals/${approval.id}`)).state).toBe('revoked')
  })
})
