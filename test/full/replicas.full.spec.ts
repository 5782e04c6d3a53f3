/** Two servers, one database: they contend for one seat, read each other's streams and take each other's commands (M5; case Q6). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RunStreamEvent, TreeView } from '#contracts'
import { createGate, DONE, finishChunk, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { answer, ask, call, follow, newTree, node, runEnded, spoken } from '../support/story.ts'
import { expectPartial, gated, heard, startTwoReplicas, viewOf } from '../support/two-replicas.ts'
import type { TwoReplicas } from '../support/two-replicas.ts'

let two: TwoReplicas
beforeAll(async () => {
  two = await startTwoReplicas({ role: 'bff' })
})
afterAll(() => two.close())
beforeEach(() => two.prepare())
afterEach(() => two.settle())

describe('one seat', () => {
  it('two asks for one character at once: one runs, the other knows its place, then runs', async () => {
    const trees: TreeView[] = await Promise.all(two.both.map((replica) => newTree(replica)))
    const gate = createGate()
    two.upstream.script(
      { steps: [textChunk('One moment. '), gate, textChunk('Yes.'), finishChunk(), usageChunk(1, 1), DONE] },
      answer('And you.'),
    )
    const asked = await Promise.all(two.both.map((replica, index) => ask(replica, trees[index]?.id ?? '', 'May I?')))
    expect(new Set(asked.map((run) => run.queue_position))).toEqual(new Set([0, 1]))
    const [runs, waits] = asked[0]?.queue_position === 0 ? asked : asked.toReversed()
    if (!runs || !waits) throw new Error('both were accepted')

    await heard(two.both[0], runs.run_id, 'One moment. ')
    for (const replica of two.both) {
      expect(await viewOf(replica, runs.run_id)).toMatchObject({ state: 'running', queue_position: 0 })
      expect(await viewOf(replica, waits.run_id)).toMatchObject({
        state: 'queued',
        queue_position: 1,
        seat_held_by: { run_id: runs.run_id, tree_id: runs.tree_id },
      })
    }
    const waiting = follow(two.both[0], waits.run_id)
    gate.open()
    const events = await waiting
    expect(events.map((event) => event.type).slice(0, 3)).toEqual(['run.requested', 'run.queued', 'run.started'])
    expect(spoken(events)).toBe('And you.')
    const ended = await Promise.all(asked.map((run) => runEnded(two.both[1], run.run_id)))
    expect(ended.map((run) => run.state)).toEqual(['finished', 'finished'])
    const [before, after] = ended[0]?.id === runs.run_id ? ended : ended.toReversed()
    expect(Date.parse(after?.started_at ?? '')).toBeGreaterThanOrEqual(Date.parse(before?.ended_at ?? ''))
  })

  it('many asks through both at once are answered one after another, each once, in the order of their places', async () => {
    const trees = await Promise.all(Array.from({ length: 6 }, (_, index) => newTree(two.both[index % 2] ?? two.both[0])))
    two.upstream.script(...trees.map((_, index) => answer(`Answer ${index}.`)))
    const before = two.upstream.requests.length
    const asked = await Promise.all(trees.map((tree, index) => ask(two.both[index % 2] ?? two.both[0], tree.id, 'Well?')))
    const ended = await Promise.all(asked.map((run) => runEnded(two.both[0], run.run_id)))
    expect(ended.map((run) => run.state)).toEqual(asked.map(() => 'finished'))
    expect(two.upstream.requests.length - before).toBe(6)
    const inLine = asked
      .map((run, index) => ({ place: run.queue_position, run: ended[index] }))
      .toSorted((left, right) => left.place - right.place)
    for (const [index, { run }] of inLine.slice(1).entries()) {
      expect(Date.parse(run?.started_at ?? '')).toBeGreaterThanOrEqual(Date.parse(inLine[index]?.run?.ended_at ?? ''))
    }
  })
})

describe('a stream read from the replica that does not run it', () => {
  it('comes as it is made, and can be left and taken up again anywhere without a gap or a double', async () => {
    const tree = await newTree(two.both[0])
    const pieces = Array.from({ length: 6 }, (_, index) => `灯${index} `)
    const { response, gates, end } = gated(pieces)
    two.upstream.script(response)
    const { run_id: runId, candidate_id: candidateId } = await ask(two.both[0], tree.id, 'Count the lamps.')
    const { host, other } = await two.hostOf(runId)

    const watched = follow(other, runId)
    const heardParts: RunStreamEvent[] = []
    let said = ''
    for (const [index, gate] of gates.entries()) {
      gate.open()
      said += pieces[index] ?? ''
      // Each piece is there before the next one is said. Every other one is read by a stream that is cut and taken up on the other side.
      const reader = index % 2 === 0 ? other : host
      const after = heardParts.at(-1)?.seq ?? 0
      heardParts.push(...(await follow(reader, runId, { after, until: (_event, all) => spoken([...heardParts, ...all]) === said })))
    }
    end.open()
    heardParts.push(...(await follow(other, runId, { after: heardParts.at(-1)?.seq ?? 0 })))
    const whole = await watched
    expect(spoken(whole)).toBe(pieces.join(''))
    expect(whole.at(-1)?.type).toBe('run.finished')
    expect(heardParts).toEqual(whole)
    expect(await follow(host, runId)).toEqual(whole)
    expect((await node(other, candidateId)).text).toBe(pieces.join(''))
  })
})

describe('commands through the other replica', () => {
  it('cancel stops the run where it is: partial sealed, upstream left', async () => {
    const { first, second, request } = await two.startTwo()
    const { other } = await two.hostOf(first.run_id)
    await call(other, 'POST', `/v1/runs/${first.run_id}/cancel`)
    await runEnded(other, first.run_id)
    await expectPartial(other, first, 'cancelled')
    expect(await request.closed).toBe(true)
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
  })

  it('cancel takes a waiting run out of the line, and the one behind it moves up', async () => {
    const { first, second } = await two.startTwo()
    const [left, right] = two.both
    const third = await ask(right, (await newTree(right)).id, 'And I?')
    expect(third.queue_position).toBe(2)
    await call(left, 'POST', `/v1/runs/${second.run_id}/cancel`)
    expect(await viewOf(right, second.run_id)).toMatchObject({ state: 'interrupted', reason: 'cancelled' })
    expect(await viewOf(right, third.run_id)).toMatchObject({ state: 'queued', queue_position: 1 })
    await call(right, 'POST', `/v1/runs/${first.run_id}/cancel`)
    expect((await runEnded(left, third.run_id)).state).toBe('finished')
  })

  it('an interjection reaches the run, whose next turn knows it', async () => {
    const [replica] = two.both
    const tree = await newTree(replica)
    const gate = createGate()
    two.upstream.script({ steps: [textChunk('To the left'), gate, finishChunk(), usageChunk(1, 1), DONE] }, answer(', no, right.'))
    const run = await ask(replica, tree.id, 'Where to?')
    await heard(replica, run.run_id, 'To the left')
    const { other } = await two.hostOf(run.run_id)
    await call(other, 'POST', `/v1/runs/${run.run_id}/steer`, { text: 'The other right!' })
    gate.open()
    const events = await follow(other, run.run_id)
    expect(spoken(events)).toBe('To the left, no, right.')
    expect(events.find((event) => event.type === 'steer.received')).toMatchObject({ used: true, text: 'The other right!' })
    expect(two.upstream.requests.at(-1)?.bodyText).toContain('The other right!')
  })

  it('an interjection that was not used before the run was stopped is in the record as unused (case Q6)', async () => {
    const { first, second } = await two.startTwo()
    const { host, other } = await two.hostOf(first.run_id)
    await call(other, 'POST', `/v1/runs/${first.run_id}/steer`, { text: 'Hurry!' })
    await call(host, 'POST', `/v1/runs/${first.run_id}/cancel`)
    const events = await follow(other, first.run_id)
    const steers = events.filter((event) => event.type === 'steer.received')
    expect(steers).toMatchObject([{ used: false, text: 'Hurry!' }])
    await expectPartial(host, first, 'cancelled')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
  })
})
