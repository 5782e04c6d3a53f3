/** Nodes put into a tree without runs, and what a tree's record says: for suites about the shape of trees. */
import type { EventPayload, EventType } from '#contracts'
import type { TestSystem } from './system.ts'

export type Planted = {
  kind: 'question' | 'candidate'
  text: string
  /** Leaves the sprout unsealed, or seals it as a partial. */
  state?: 'open' | 'partial'
}

/** Hangs nodes below each other, the first one below `parentId`; adopts them and moves the head to the last. Answers their ids. */
export async function plantPath(system: TestSystem, treeId: string, parentId: string, nodes: readonly Planted[]): Promise<string[]> {
  const { database, contents, ids, conversation } = system.system
  const trees = conversation.treeStore
  return database.run(async () => {
    const tree = await trees.lock(system.ownerId, treeId)
    const parent = await trees.node(system.ownerId, parentId)
    if (!tree || !parent) throw new Error('there is nothing to plant below')
    const stored = await contents.putMany(nodes.map((node) => ({ owner_id: system.ownerId, media_type: 'text/plain', content: node.text })))
    const planted = nodes.map(() => ids.next())
    const parents = planted.map((_, index) => planted[index - 1] ?? parentId)
    await database.execute(
      `INSERT INTO nodes (id, tree_id, owner_id, parent_id, kind, role, seq, depth, sealed, partial, author, trust, content_id, at)
       SELECT n.id, $1::uuid, $2::uuid, n.parent_id, n.kind, CASE n.kind WHEN 'question' THEN 'user' ELSE 'character' END, $3 + n.at, $4 + n.at,
              n.state <> 'open', n.state = 'partial', CASE n.kind WHEN 'question' THEN 'owner' ELSE 'character' END,
              CASE n.kind WHEN 'question' THEN 'trusted' ELSE 'workspace' END, CASE WHEN n.state <> 'open' THEN n.content_id END, now()
       FROM unnest($5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::uuid[]) WITH ORDINALITY AS n(id, parent_id, kind, state, content_id, at) ORDER BY n.at`,
      [
        treeId,
        system.ownerId,
        tree.node_seq,
        parent.depth,
        planted,
        parents,
        nodes.map((node) => node.kind),
        nodes.map((node) => node.state ?? 'sealed'),
        stored.map((content) => content.id),
      ],
    )
    await database.execute(
      `INSERT INTO adoptions (tree_id, parent_id, child_id) SELECT $1::uuid, a.parent_id, a.child_id FROM unnest($2::uuid[], $3::uuid[]) AS a(parent_id, child_id)
       ON CONFLICT (tree_id, parent_id) DO UPDATE SET child_id = excluded.child_id`,
      [treeId, parents, planted],
    )
    await database.execute('UPDATE trees SET node_seq = node_seq + $2 WHERE id = $1::uuid', [treeId, planted.length])
    await trees.moveHead(treeId, planted.at(-1) ?? parentId)
    return planted
  })
}

/** A question and its answer. */
export function exchange(question: string, answer: string): Planted[] {
  return [
    { kind: 'question', text: question },
    { kind: 'candidate', text: answer },
  ]
}

/** The payloads of a stream's events of one type, oldest first. */
export async function recorded<T extends EventType>(system: TestSystem, stream: string, type: T): Promise<EventPayload<T>[]> {
  const events = await system.system.log.read(stream, { types: [type] })
  return events.map((event) => event.record.payload as EventPayload<T>)
}

/** The attempts against an invariant that a tree's record holds, oldest first. */
export async function refusals(
  system: TestSystem,
  treeId: string,
): Promise<{ invariant: string; attempt: string; node_id: string | null }[]> {
  return (await recorded(system, `tree:${treeId}`, 'invariant.refused')).map(({ invariant, attempt, node_id }) => ({
    invariant,
    attempt,
    node_id,
  }))
}

/** Types of a run's events in order, with the number of each run of equal ones left out. */
export async function recordedTypes(system: TestSystem, runId: string): Promise<string[]> {
  const types = (await system.system.log.read(`run:${runId}`, {})).map((event) => event.record.type)
  return types.filter((type, index) => type !== types[index - 1])
}
