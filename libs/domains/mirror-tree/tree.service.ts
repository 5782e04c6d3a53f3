import { LingtaiError } from '#contracts'
import type { CreateTree, NewEvent, Outline, PathView, TreeView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { contentDigest } from '#kernel/record/chain'
import type { NodeViews } from './node-views.ts'
import type { TreeRow, TreeStore } from './ports.ts'

/** What a new tree needs of its character: the greetings, with macros still in them. */
export interface GreetingSource {
  greetings(ownerId: string, characterId: string): Promise<{ name: string; realmId: string; greetings: string[] } | null>
  realmExists(ownerId: string, realmId: string): Promise<boolean>
  personaVersionExists(ownerId: string, versionId: string): Promise<boolean>
  userName(ownerId: string, personaVersionId: string | null): Promise<string>
}

export type TreeDeps = {
  unitOfWork: UnitOfWork
  trees: TreeStore
  runs: RunStore
  contents: ContentStore
  log: EventLog
  views: NodeViews
  characters: GreetingSource
  clock: Clock
  ids: Ids
}

/** Trees: made, listed, read. */
export class TreeService {
  readonly #deps: TreeDeps

  constructor(deps: TreeDeps) {
    this.#deps = deps
  }

  /** A tree with its virtual root, whose candidates are the character's greetings (decision 24). */
  async create(ownerId: string, input: CreateTree): Promise<TreeView> {
    const { unitOfWork, trees, characters, ids, log, views } = this.#deps
    const character = await characters.greetings(ownerId, input.character_id)
    if (!character) throw missing('character_id', 'unknown character')
    const realmId = input.realm_id ?? character.realmId
    if (!(await characters.realmExists(ownerId, realmId))) throw missing('realm_id', 'unknown realm')
    const personaVersionId = input.user_persona_version_id ?? null
    if (personaVersionId !== null && !(await characters.personaVersionExists(ownerId, personaVersionId))) {
      throw missing('user_persona_version_id', 'unknown persona version')
    }
    const userName = await characters.userName(ownerId, personaVersionId)
    return unitOfWork.run(async () => {
      const treeId = ids.next()
      const rootId = ids.next()
      await trees.insertTree({
        id: treeId,
        owner_id: ownerId,
        title: input.title ?? '',
        realm_id: realmId,
        root_node_id: rootId,
        user_persona_version_id: personaVersionId,
        zone: input.zone,
        character_ids: [input.character_id],
      })
      await log.append({
        stream: `tree:${treeId}`,
        ownerId,
        events: [
          this.#event({ type: 'tree.created', payload: { realm_id: realmId, root_node_id: rootId, character_ids: [input.character_id] } }),
        ],
      })
      const texts = character.greetings.filter((text) => text.trim() !== '')
      let first: string | null = null
      for (const text of texts) {
        const id = await this.#addGreeting({
          treeId,
          rootId,
          ownerId,
          characterId: input.character_id,
          text: greet(text, character.name, userName),
        })
        first ??= id
      }
      if (first !== null) {
        await trees.adopt(treeId, rootId, first)
        await trees.moveHead(treeId, first)
      }
      const tree = await trees.find(ownerId, treeId)
      if (!tree) throw new LingtaiError('internal_error')
      return views.tree(tree)
    })
  }

  async #addGreeting(greeting: { treeId: string; rootId: string; ownerId: string; characterId: string; text: string }): Promise<string> {
    const { trees, contents, ids, clock, log } = this.#deps
    const { treeId, rootId, ownerId, characterId } = greeting
    const content = await contents.put({ owner_id: ownerId, media_type: 'text/plain', content: greeting.text })
    const id = ids.next()
    const seq = await trees.insertNode({
      id,
      tree_id: treeId,
      owner_id: ownerId,
      parent_id: rootId,
      kind: 'candidate',
      role: 'character',
      sealed: true,
      partial: false,
      speaker_character_id: characterId,
      speaker_name: null,
      author: 'character',
      // Until its card is accepted a greeting is as untrusted as the card; afterwards the projection takes the card's trust for it.
      trust: 'untrusted',
      content_id: content.id,
      run_id: null,
      edited_from_id: null,
      zone: null,
      at: clock.now(),
    })
    await log.append({
      stream: `tree:${treeId}`,
      ownerId,
      events: [
        this.#event({
          type: 'node.added',
          payload: {
            node_id: id,
            parent_id: rootId,
            kind: 'candidate',
            role: 'character',
            node_seq: seq,
            content_id: content.id,
            run_id: null,
            edited_from_id: null,
          },
          content_digests: [contentDigest(content.id, content.digest)],
        }),
      ],
    })
    return id
  }

  async get(ownerId: string, treeId: string): Promise<TreeView> {
    return this.#deps.views.tree(await this.#find(ownerId, treeId))
  }

  async list(
    ownerId: string,
    query: { limit: number; cursor?: string; character_id?: string },
  ): Promise<{ items: TreeView[]; next_cursor: string | null }> {
    const { trees, views } = this.#deps
    const rows = await trees.list(ownerId, { characterId: query.character_id, before: parseCursor(query.cursor), limit: query.limit + 1 })
    const page = rows.slice(0, query.limit)
    const last = page.at(-1)
    return {
      items: await Promise.all(page.map((tree) => views.tree(tree))),
      next_cursor: rows.length > query.limit && last ? `${last.updated_at.toISOString()}_${last.id}` : null,
    }
  }

  async rename(ownerId: string, treeId: string, title: string): Promise<TreeView> {
    const { unitOfWork, trees } = this.#deps
    return unitOfWork.run(async () => {
      await this.#find(ownerId, treeId)
      await trees.rename(treeId, title)
      return this.get(ownerId, treeId)
    })
  }

  async outline(ownerId: string, treeId: string, query: { after_seq: number; limit: number }): Promise<Outline> {
    const { trees, views } = this.#deps
    const tree = await this.#find(ownerId, treeId)
    const rows = await trees.outline(treeId, { afterSeq: query.after_seq, limit: query.limit + 1 })
    const canonical = new Set(await trees.canonicalNodeIds(treeId))
    return {
      tree: await views.tree(tree),
      nodes: rows.slice(0, query.limit).map((node) => ({
        id: node.id,
        parent_id: node.parent_id,
        seq: node.seq,
        depth: node.depth,
        kind: node.kind,
        role: node.role,
        sealed: node.sealed,
        partial: node.partial,
        deleted: node.deleted,
        canonical: canonical.has(node.id),
        run_id: node.run_id,
        label: node.label.toWellFormed(),
      })),
      path_node_ids: await trees.pathIds(ownerId, tree.head_node_id),
      more: rows.length > query.limit,
    }
  }

  async path(ownerId: string, treeId: string, query: { leaf?: string; before?: string; limit: number }): Promise<PathView> {
    const { trees, runs, views } = this.#deps
    const tree = await this.#find(ownerId, treeId)
    const leafId = query.leaf ?? tree.head_node_id
    const leaf = await trees.node(ownerId, leafId)
    if (!leaf || leaf.tree_id !== treeId) throw missing('leaf', 'unknown node')
    const start = query.before === undefined ? leaf : await trees.node(ownerId, query.before)
    if (!start || start.tree_id !== treeId) throw missing('before', 'unknown node')
    const from = query.before === undefined ? start.id : start.parent_id
    const rows = from === null ? [] : await trees.path(ownerId, from, query.limit + 1)
    const page = rows.slice(Math.max(0, rows.length - query.limit))
    const live = await runs.liveUnder(leaf.kind === 'candidate' && leaf.parent_id !== null ? leaf.parent_id : leafId)
    return {
      tree: await views.tree(tree),
      leaf_id: leafId,
      nodes: await views.nodes(page, trees.canonicalNodeIds(treeId)),
      before: rows.length > query.limit ? (page[0]?.id ?? null) : null,
      live_run_id: live?.id ?? null,
    }
  }

  async #find(ownerId: string, treeId: string): Promise<TreeRow> {
    const tree = await this.#deps.trees.find(ownerId, treeId)
    if (!tree) throw new LingtaiError('not_found')
    return tree
  }

  #event<T extends Omit<NewEvent, 'actor' | 'at' | 'cause'>>(event: T): T & Pick<NewEvent, 'actor' | 'at' | 'cause'> {
    return { actor: 'owner', at: this.#deps.clock.now().toISOString(), cause: { tag: 'tree.create' }, ...event }
  }
}

/** Greetings are shown and stored as they are spoken: names filled in once, when the tree is made. */
function greet(text: string, character: string, user: string): string {
  return text.replace(/\{\{(char|user)\}\}|<(BOT|USER)>/gi, (_, macro: string | undefined, legacy: string | undefined) =>
    (macro ?? legacy ?? '').toLowerCase() === 'char' || legacy?.toUpperCase() === 'BOT' ? character : user,
  )
}

function missing(path: string, message: string): LingtaiError {
  return new LingtaiError('not_found', undefined, { errors: [{ path, message }] })
}

/** `<ISO time>_<id>`; anything else is refused. */
export function parseCursor(cursor: string | undefined): { updatedAt: Date; id: string } | undefined {
  if (cursor === undefined) return undefined
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)_([0-9a-f-]{36})$/.exec(cursor)
  if (!match?.[1] || !match[2])
    throw new LingtaiError('validation_failed', 'The cursor is not one of ours.', {
      errors: [{ path: 'cursor', message: 'unknown cursor' }],
    })
  return { updatedAt: new Date(match[1]), id: match[2] }
}
