import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Canonized, CanonizationView, Edited, HeadMoved, NodeView, Outline, Problem, RunAccepted, TreeView } from '#contracts'
import { HOLD, textChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { exchange, plantPath, recorded, refusals } from '../support/plant.ts'
import { answer, ask, askAndHear, call, follow, newTree, node, path, runEnded, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { requested, startWorld, words } from '../support/world.ts'
import type { World } from '../support/world.ts'

// Each test walks several turns; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

let world: World
let system: TestSystem
let upstream: FakeUpstream

beforeAll(async () => {
  world = await startWorld()
  ;({ system, upstream } = world)
})
afterAll(() => world.close())
beforeEach(() => upstream.unscript())

async function texts(treeId: string): Promise<string[]> {
  return (await path(system, treeId)).nodes.map((entry) => entry.text)
}

function problemOf(method: string, route: string, body: unknown, status: number): Promise<Problem> {
  return call<Problem>(system, method, route, body, { status })
}

/** A tree with its greeting and then these exchanges, planted without runs. Answers the ids of question and answer, in turn. */
async function plantedTree(...exchanges: [string, string][]): Promise<{ tree: TreeView; ids: string[] }> {
  const tree = await newTree(system)
  const ids = await plantPath(
    system,
    tree.id,
    tree.head_node_id,
    exchanges.flatMap(([question, said]) => exchange(question, said)),
  )
  return { tree, ids }
}

/** Has a run wait for an answer that never comes, until its request is there. */
function held(start: () => Promise<RunAccepted>): Promise<RunAccepted> {
  return requested(world, [{ beforeHeaders: HOLD }], start)
}

/** Follows a run until so many characters were shown, and stops it there. */
async function stopAfter(accepted: RunAccepted, shown: string): Promise<string> {
  const events = await follow(system, accepted.run_id, { until: (_, all) => spoken(all) === shown })
  await call(system, 'POST', `/v1/runs/${accepted.run_id}/cancel`)
  return spoken(events)
}

describe('candidates', () => {
  it('T1: a regenerated answer is a sibling; going back shows what followed; removing the new one leaves the old path', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1a'], ['q2', 'c2'])
    const [question = '', first = '', , last = ''] = ids
    upstream.script(answer('c1b'))
    const accepted = await call<RunAccepted>(system, 'POST', `/v1/nodes/${first}/regenerate`, {})
    await follow(system, accepted.run_id)

    expect(await node(system, accepted.candidate_id)).toMatchObject({
      parent_id: question,
      text: 'c1b',
      sibling_ids: [first, accepted.candidate_id],
    })
    expect(await texts(tree.id)).toEqual([expect.any(String), 'q1', 'c1b'])
    expect((await node(system, first)).text).toBe('c1a')

    const back = await call<HeadMoved>(system, 'POST', `/v1/nodes/${first}/adopt`)
    expect(back.head.id).toBe(last)
    expect(await texts(tree.id)).toEqual([expect.any(String), 'q1', 'c1a', 'q2', 'c2'])

    await call(system, 'POST', `/v1/nodes/${accepted.candidate_id}/adopt`)
    await call(system, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    expect(await texts(tree.id)).toEqual([expect.any(String), 'q1', 'c1a', 'q2', 'c2'])
    expect((await node(system, first)).sibling_ids).toEqual([first])
  })

  it('T2: one that is stopped before its first word leaves no trace in the tree; one stopped after 12 words is a partial of 12', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1a'], ['q2', 'c2'])
    const [, first = '', , last = ''] = ids
    const silent = await held(() => call<RunAccepted>(system, 'POST', `/v1/nodes/${first}/regenerate`, {}))
    await call(system, 'POST', `/v1/runs/${silent.run_id}/cancel`)
    const events = await follow(system, silent.run_id)
    expect(events.at(-1)).toMatchObject({
      type: 'run.interrupted',
      reason: 'cancelled',
      candidate_id: null,
      delta_count: 0,
      partial: false,
    })
    expect((await system.call('GET', `/v1/nodes/${silent.candidate_id}`)).status).toBe(404)
    const after = await path(system, tree.id)
    expect(after.tree.head_node_id).toBe(last)
    expect(after.live_run_id).toBeNull()
    expect((await node(system, first)).sibling_ids).toEqual([first])

    upstream.script({ steps: [...words(12).map(textChunk), HOLD] })
    const partial = await call<RunAccepted>(system, 'POST', `/v1/nodes/${first}/regenerate`, {})
    await stopAfter(partial, words(12).join(''))
    await runEnded(system, partial.run_id)
    expect(await node(system, partial.candidate_id)).toMatchObject({ sealed: true, partial: true, text: words(12).join('') })
    expect((await path(system, tree.id)).tree.head_node_id).toBe(partial.candidate_id)
  })

  it('T5: stopped at word 20 and asked again at once, the new question hangs below the partial', async () => {
    const tree = await newTree(system)
    upstream.script({ steps: [...words(20).map(textChunk), HOLD] }, answer('Yes.'))
    const first = await ask(system, tree.id, 'Tell me everything.')
    await stopAfter(first, words(20).join(''))
    const second = await ask(system, tree.id, 'Only that much?')
    expect(second.question?.parent_id).toBe(first.candidate_id)
    await follow(system, second.run_id)
    expect((await texts(tree.id)).slice(1)).toEqual(['Tell me everything.', words(20).join(''), 'Only that much?', 'Yes.'])
  })

  it('an edited answer is a sibling written by the owner; the old one keeps its text', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1a'])
    const [question = '', first = ''] = ids
    const edited = await call<Edited>(system, 'POST', `/v1/nodes/${first}/edit`, { text: '改过的回答 🌊' })
    expect(edited.run).toBeNull()
    expect(edited.node).toMatchObject({
      parent_id: question,
      author: 'owner',
      edited_from_id: first,
      text: '改过的回答 🌊',
      sibling_ids: [first, edited.node.id],
    })
    expect((await node(system, first)).text).toBe('c1a')
    expect((await path(system, tree.id)).tree.head_node_id).toBe(edited.node.id)
  })
})

describe('several devices', () => {
  it('T3: two that read the same revision both get their question in; the later one is told, nothing is hung elsewhere', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1'])
    const base = ids.at(-1) ?? ''
    const { revision } = await call<TreeView>(system, 'GET', `/v1/trees/${tree.id}`)
    const first = await held(() => call<RunAccepted>(system, 'POST', `/v1/trees/${tree.id}/runs`, { text: 'from A', revision }))
    upstream.script(answer('for B'))
    expect(first.newer_head).toBe(false)
    const second = await call<RunAccepted>(system, 'POST', `/v1/trees/${tree.id}/runs`, { text: 'from B', revision })
    expect(second).toMatchObject({ newer_head: true, state: 'queued', queue_position: 1 })
    expect(second.question?.parent_id).toBe(base)
    expect((await node(system, first.question_id)).parent_id).toBe(base)
    await call(system, 'POST', `/v1/runs/${first.run_id}/cancel`)
    expect(spoken(await follow(system, second.run_id))).toBe('for B')
    expect((await node(system, first.question_id)).sibling_ids).toEqual([first.question_id, second.question_id])
    expect((await path(system, tree.id)).tree.head_node_id).toBe(second.candidate_id)

    // Whoever has seen everything and names no parent while an answer is being written is refused, and that is on record.
    const third = await held(() => ask(system, tree.id, 'once more'))
    const refused = await problemOf('POST', `/v1/trees/${tree.id}/runs`, { text: 'and below it', revision: third.revision }, 409)
    expect(refused.code).toBe('candidate_open')
    expect(await refusals(system, tree.id)).toEqual([{ invariant: 'M1', attempt: 'ask', node_id: third.candidate_id }])
    await call(system, 'POST', `/v1/runs/${third.run_id}/cancel`)
    await runEnded(system, third.run_id)
  })

  it('two asks at once both stand, in order of arrival', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1'])
    upstream.script(answer('one'), answer('two'))
    const both = await Promise.all(['first?', 'second?'].map((text) => ask(system, tree.id, text, { parent_id: ids.at(-1) ?? '' })))
    expect(both.map((accepted) => accepted.queue_position).toSorted()).toEqual([0, 1])
    const heard = await Promise.all(both.map((accepted) => follow(system, accepted.run_id)))
    expect(heard.map(spoken).toSorted()).toEqual(['one', 'two'])
    const questions = await Promise.all(both.map((accepted) => node(system, accepted.question_id)))
    expect(new Set(questions.map((question) => question.seq)).size).toBe(2)
    expect(questions[0]?.sibling_ids).toEqual(questions.toSorted((left, right) => left.seq - right.seq).map((question) => question.id))
  })

  it('T4: an error of the database while a tree loads is a 5xx, and no greeting is made over the tree that is there', async () => {
    const { tree } = await plantedTree(['q1', 'c1'])
    const trees = system.system.conversation.treeStore
    trees.path = () => Promise.reject(new Error('the disk is on fire'))
    const broken = await system.call('GET', `/v1/trees/${tree.id}/path`).finally(() => Reflect.deleteProperty(trees, 'path'))
    expect(broken.status).toBe(500)
    expect((await path(system, tree.id)).nodes).toHaveLength(3)
    await expect(
      system.system.database.execute(
        `INSERT INTO nodes (id, tree_id, owner_id, kind, role, seq, depth, sealed, author, trust, at)
         VALUES ($1::uuid, $2::uuid, $3::uuid, 'root', 'none', 999, 0, true, 'system', 'trusted', now())`,
        [system.system.ids.next(), tree.id, system.ownerId],
      ),
    ).rejects.toThrow(/nodes_one_root/)
  })

  it('T6: nodes with equal times stand in order of their sequence, whatever their ids', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1'])
    const question = ids[0] ?? ''
    const { database, contents, conversation } = system.system
    const shuffled = ['7', '3', 'f', '0'].map((digit) =>
      `01935f00-0000-7000-8000-00000000000${digit}`.replace('01935f00', tree.id.slice(0, 8)),
    )
    const at = new Date('2026-01-01T00:00:00Z')
    await database.run(async () => {
      for (const id of shuffled) {
        const content = await contents.put({ owner_id: system.ownerId, media_type: 'text/plain', content: id })
        await conversation.treeStore.insertNode({
          id,
          tree_id: tree.id,
          owner_id: system.ownerId,
          parent_id: question,
          kind: 'candidate',
          role: 'character',
          sealed: true,
          partial: false,
          speaker_character_id: null,
          speaker_name: null,
          author: 'import',
          trust: 'workspace',
          content_id: content.id,
          run_id: null,
          edited_from_id: null,
          zone: null,
          at,
        })
      }
    })
    expect((await node(system, shuffled[0] ?? '')).sibling_ids).toEqual([ids[1], ...shuffled])
    const outline = await call<Outline>(system, 'GET', `/v1/trees/${tree.id}/outline`)
    expect(outline.nodes.slice(-4).map((entry) => entry.id)).toEqual(shuffled)
    expect(outline.nodes.map((entry) => entry.seq)).toEqual(outline.nodes.map((_, index) => index))
  })
})

describe('deleting', () => {
  it('a deleted inner message projects as nothing, what hangs below stays, and nothing new hangs below it', async () => {
    const { tree, ids } = await plantedTree(['q1', 'the secret answer'], ['q2', 'c2'])
    const [, inner = '', , last = ''] = ids
    await call(system, 'DELETE', `/v1/nodes/${inner}`)
    expect(await texts(tree.id)).toEqual([expect.any(String), 'q1', '', 'q2', 'c2'])
    expect((await path(system, tree.id)).tree.head_node_id).toBe(last)
    upstream.script(answer('Fine.'))
    const { accepted } = await askAndHear(system, tree.id, 'and now?')
    const sent = upstream.requests.at(-1)?.bodyText ?? ''
    expect(sent).toContain('q2')
    expect(sent).not.toContain('the secret answer')
    const replayed = await call<{ result: string }>(system, 'GET', `/v1/admin/runs/${accepted.run_id}/context`)
    expect(replayed.result).toBe('identical')

    for (const [route, body, attempt] of [
      [`/v1/trees/${tree.id}/runs`, { text: 'x', parent_id: inner }, 'ask'],
      [`/v1/nodes/${inner}/edit`, { text: 'x' }, 'edit'],
      [`/v1/nodes/${inner}/fork`, undefined, 'fork'],
      [`/v1/nodes/${inner}/adopt`, undefined, 'adopt'],
      [`/v1/nodes/${inner}/canonize`, undefined, 'canonize'],
    ] as const) {
      expect((await problemOf('POST', route, body, 409)).code).toBe('node_deleted')
      expect((await refusals(system, tree.id)).at(-1)).toEqual({ invariant: 'M6', attempt, node_id: inner })
    }
    // Twice is once.
    await call(system, 'DELETE', `/v1/nodes/${inner}`)
    await Promise.all([last, last].map((id) => call(system, 'DELETE', `/v1/nodes/${id}`)))
  })

  it('the head never stays on a tombstone, nor comes back to one', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1'])
    const [question = '', first = ''] = ids
    const greeting = (await path(system, tree.id)).nodes[0]?.id ?? ''
    await call(system, 'DELETE', `/v1/nodes/${first}`)
    expect((await path(system, tree.id)).tree.head_node_id).toBe(question)
    await call(system, 'DELETE', `/v1/nodes/${question}`)
    expect((await path(system, tree.id)).tree.head_node_id).toBe(greeting)
    const moved = await call<HeadMoved>(system, 'POST', `/v1/nodes/${greeting}/adopt`)
    expect(moved.head.id).toBe(greeting)
    // A candidate that was gone to without being adopted is left as well.
    const [other = '', one = ''] = await plantPath(system, tree.id, greeting, exchange('q2', 'c2'))
    const edited = await call<Edited>(system, 'POST', `/v1/nodes/${one}/edit`, { text: 'c2b' })
    await call(system, 'POST', `/v1/nodes/${one}/adopt`)
    await call(system, 'POST', `/v1/nodes/${edited.node.id}/fork`)
    await call(system, 'DELETE', `/v1/nodes/${edited.node.id}`)
    expect((await path(system, tree.id)).tree.head_node_id).toBe(one)
    expect((await node(system, other)).deleted).toBe(false)
  })

  it('a question waits for its answer before it can be deleted', async () => {
    const tree = await newTree(system)
    const accepted = await held(() => ask(system, tree.id, 'wait for it'))
    expect((await problemOf('DELETE', `/v1/nodes/${accepted.question_id}`, undefined, 409)).code).toBe('candidate_open')
    expect((await problemOf('DELETE', `/v1/trees/${tree.id}`, undefined, 409)).code).toBe('candidate_open')
    await call(system, 'POST', `/v1/runs/${accepted.run_id}/cancel`)
    await runEnded(system, accepted.run_id)
    await call(system, 'DELETE', `/v1/nodes/${accepted.question_id}`)
    expect(await node(system, accepted.question_id)).toMatchObject({ deleted: true, text: '', parts: [] })
  })
})

describe('citations', () => {
  const said = '山顶有一座灯塔🗼,风很大 👩‍👩‍👧。'

  it('a quoted passage is kept as it was said, goes along with an edit, and is erased with its source (decision 13)', async () => {
    const { tree, ids } = await plantedTree(['q1', said])
    const source = ids[1] ?? ''
    const passage = { node_id: source, from: said.indexOf('一座'), to: said.indexOf(',') }
    upstream.script(answer('嗯。'), answer('嗯嗯。'))
    const accepted = await call<RunAccepted>(system, 'POST', `/v1/trees/${tree.id}/runs`, { text: '这座呢?', citations: [passage] })
    await follow(system, accepted.run_id)
    expect(accepted.question?.citations).toMatchObject([{ source_node_id: source, text: '一座灯塔🗼' }])
    expect(JSON.parse(upstream.requests.at(-1)?.bodyText ?? '{}')).toMatchObject({
      messages: expect.arrayContaining([expect.objectContaining({ content: expect.stringContaining('一座灯塔🗼') })]),
    })

    const edited = await call<Edited>(system, 'POST', `/v1/nodes/${accepted.question_id}/edit`, { text: '这座灯塔呢?' })
    expect(edited.node.citations).toMatchObject([{ source_node_id: source, text: '一座灯塔🗼', from: passage.from, to: passage.to }])
    await follow(system, edited.run?.run_id ?? '')

    await call(system, 'DELETE', `/v1/nodes/${source}`)
    for (const questionId of [accepted.question_id, edited.node.id]) {
      expect((await node(system, questionId)).citations).toMatchObject([{ source_node_id: source, text: null }])
    }
    const [left] = await system.system.database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM contents WHERE body LIKE '%一座灯塔%'`,
    )
    expect(left?.count).toBe(0)
    // What was sent then can no longer be shown, which is no difference.
    expect((await call<{ result: string }>(system, 'GET', `/v1/admin/runs/${accepted.run_id}/context`)).result).toBe('erased')
  })

  it('a passage that is not there is refused by name, and so is one that cuts a character in two', async () => {
    const { tree, ids } = await plantedTree(['q1', said])
    const source = ids[1] ?? ''
    const lamp = said.indexOf('🗼')
    const nodes = (await path(system, tree.id)).tree.node_count
    for (const [citation, at] of [
      [{ node_id: source, from: lamp + 1, to: lamp + 2 }, 'from'],
      [{ node_id: source, from: 0, to: lamp + 1 }, 'to'],
      [{ node_id: source, from: 0, to: said.length + 1 }, 'to'],
      [{ node_id: source, from: said.length, to: said.length + 1 }, 'from'],
      [{ node_id: tree.root_node_id, from: 0, to: 1 }, 'node_id'],
      [{ node_id: system.system.ids.next(), from: 0, to: 1 }, 'node_id'],
    ] as const) {
      const problem = await problemOf('POST', `/v1/trees/${tree.id}/runs`, { text: 'x', citations: [citation] }, 400)
      expect(problem.errors).toEqual([{ path: `citations[0].${at}`, message: 'no such passage' }])
    }
    expect((await path(system, tree.id)).tree.node_count).toBe(nodes)
  })
})

describe('canon', () => {
  const canonize = (id: string): Promise<Canonized> =>
    call<Canonized>(system, 'POST', `/v1/nodes/${id}/canonize`, undefined, { status: 201 })

  async function canonical(treeId: string): Promise<string[]> {
    return (await path(system, treeId)).nodes.filter((entry) => entry.canonical).map((entry) => entry.text)
  }

  it('covers what lies between the nearest canonical message and this one, a partial left out; switching does not undo it (M4)', async () => {
    const tree = await newTree(system)
    const [, first = '', , , second = '', third = ''] = await plantPath(system, tree.id, tree.head_node_id, [
      ...exchange('q1', 'c1'),
      { kind: 'question', text: 'q2' },
      { kind: 'candidate', text: 'half of c2', state: 'partial' },
      { kind: 'candidate', text: 'c2 told on' },
      ...exchange('q3', 'c3').slice(1),
    ])
    const one = await canonize(first)
    expect(one.canonization).toMatchObject({ from_node_id: tree.root_node_id, to_node_id: first })
    const two = await canonize(second)
    expect(two).toMatchObject({ canonization: { from_node_id: first, to_node_id: second }, warnings: [] })
    expect((await canonical(tree.id)).slice(1)).toEqual(['q1', 'c1', 'q2', 'c2 told on'])
    expect((await problemOf('POST', `/v1/nodes/${first}/canonize`, undefined, 409)).code).toBe('already_canonical')

    const edited = await call<Edited>(system, 'POST', `/v1/nodes/${first}/edit`, { text: 'c1, otherwise' })
    expect((await path(system, tree.id)).nodes.at(-1)?.canonical).toBe(false)
    await call(system, 'POST', `/v1/nodes/${first}/adopt`)
    expect((await path(system, tree.id)).tree.head_node_id).toBe(third)
    expect((await canonical(tree.id)).slice(1)).toEqual(['q1', 'c1', 'q2', 'c2 told on'])
    const other = await canonize(edited.node.id)
    expect(other.warnings.map((warning) => warning.canonization_id).toSorted()).toEqual(
      [one.canonization.id, two.canonization.id].toSorted(),
    )
  })

  it('is left only by withdrawing, explicitly and once; deleting what is canonical asks first (M4)', async () => {
    const { tree, ids } = await plantedTree(['q1', 'c1'], ['q2', 'c2'])
    const [, first = '', , last = ''] = ids
    const { canonization } = await canonize(last)
    const refused = await problemOf('DELETE', `/v1/nodes/${first}`, undefined, 409)
    expect(refused).toMatchObject({ code: 'canonical_node', errors: [{ path: 'withdraw' }] })
    expect(await canonical(tree.id)).toHaveLength(5)
    await call(system, 'DELETE', `/v1/nodes/${first}?withdraw=true`)
    expect(await canonical(tree.id)).toEqual([])
    const { items } = await call<{ items: CanonizationView[] }>(system, 'GET', `/v1/trees/${tree.id}/canonizations`)
    expect(items).toMatchObject([{ id: canonization.id, withdrawn_at: expect.any(String) }])

    const again = await canonize(last)
    const withdrawals = await Promise.all(
      [1, 2].map(() => call<CanonizationView>(system, 'POST', `/v1/canonizations/${again.canonization.id}/withdraw`)),
    )
    expect(withdrawals[0]).toEqual(withdrawals[1])
    expect(await recorded(system, `tree:${tree.id}`, 'canon.withdrawn')).toHaveLength(2)
  })
})

describe('a long path', () => {
  it('of 2,000 messages is paged from its end, read whole by the model as far as the window reaches, forked and deleted', async () => {
    const { tree, ids } = await plantedTree(
      ...Array.from({ length: 1_000 }, (_, index): [string, string] => [`question ${index}`, `answer ${index} 好`]),
    )
    const collected: NodeView[] = []
    for (let before: string | null = ''; before !== null;) {
      const page = await path(system, tree.id, `?limit=500${before === '' ? '' : `&before=${before}`}`)
      collected.unshift(...page.nodes)
      before = page.before
    }
    expect(collected.slice(1).map((entry) => entry.id)).toEqual(ids)
    expect(collected.map((entry) => entry.depth)).toEqual(collected.map((_, index) => index + 1))
    expect((await call<Outline>(system, 'GET', `/v1/trees/${tree.id}/outline`)).path_node_ids).toHaveLength(2_001)

    upstream.script(answer('Still here.'))
    const { text, accepted, events } = await askAndHear(system, tree.id, 'Do you remember?')
    expect(events.at(-1)).toMatchObject({ type: 'run.finished' })
    expect(text).toBe('Still here.')
    const sent = upstream.requests.at(-1)?.bodyText ?? ''
    expect(sent).toContain('answer 999 好')
    expect(sent).not.toContain('"question 0"')
    expect((await call<{ result: string }>(system, 'GET', `/v1/admin/runs/${accepted.run_id}/context`)).result).toBe('identical')

    const middle = ids[999] ?? ''
    const forked = await call<HeadMoved>(system, 'POST', `/v1/nodes/${middle}/fork`)
    expect(forked.head.id).toBe(middle)
    expect((await path(system, tree.id, '?limit=1')).nodes.map((entry) => entry.id)).toEqual([middle])
    await call(system, 'POST', `/v1/nodes/${ids[998] ?? ''}/adopt`)
    expect((await path(system, tree.id, '?limit=1')).tree.head_node_id).toBe(accepted.candidate_id)

    await call(system, 'DELETE', `/v1/trees/${tree.id}`)
    expect((await system.call('GET', `/v1/trees/${tree.id}`)).status).toBe(404)
    const [left] = await system.system.database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM contents c JOIN nodes n ON n.content_id = c.id WHERE n.tree_id = $1::uuid AND c.erased_at IS NULL',
      [tree.id],
    )
    expect(left?.count).toBe(0)
  })
})
