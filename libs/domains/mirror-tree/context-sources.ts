import type { RunRow } from '#kernel/ports/run-store'
import { saltedDigest } from '#kernel/record/chain'
import type { PersonaSource, UserPersonaSource } from '#runtime/prompt/persona-entities'
import type { ContextSources, PromptPlace, RecallAnswer, RecallQueries, SourceCitation, SourceNode } from '#runtime/turn/context-sources'
import { partsOf } from '#kernel/record/content-parts'
import type { PathNode, TreeStore } from './ports.ts'

/** The characters' side of a prompt. */
export interface PersonaReader {
  currentVersion(ownerId: string, characterId: string): Promise<string>
  persona(ownerId: string, characterId: string, versionId: string): Promise<PersonaSource>
  user(ownerId: string, personaVersionId: string | null): Promise<UserPersonaSource>
}

/** The memories' side of a prompt. */
export interface MemoryRecall {
  recall(input: { run: RunRow; realmId: string; queries: RecallQueries }): Promise<RecallAnswer>
}

/** Nodes read at first, and by how much more each time that they do not fill the window. */
const FIRST_PAGE = 128
const PAGE_GROWTH = 4
/** No text has more tokens than UTF-16 units in a window's worth; below this share of it, reading on is worth it. */
const UNITS_PER_TOKEN = 1

/** Reads what a context may be made of from the tree, the characters and the memories, and from nowhere else (M6). */
export class TreeContextSources implements ContextSources {
  readonly #trees: TreeStore
  readonly #personas: PersonaReader
  readonly #memories: MemoryRecall

  constructor({ trees, personas, memories }: { trees: TreeStore; personas: PersonaReader; memories: MemoryRecall }) {
    this.#trees = trees
    this.#personas = personas
    this.#memories = memories
  }

  async currentPersona(run: RunRow): Promise<string> {
    return this.#personas.currentVersion(run.owner_id, run.character_id)
  }

  async place(run: RunRow, personaVersionId: string): Promise<PromptPlace> {
    if (run.tree_id === null) throw new TreeGoneError(run.id)
    const [tree, persona] = await Promise.all([
      this.#trees.find(run.owner_id, run.tree_id),
      this.#personas.persona(run.owner_id, run.character_id, personaVersionId),
    ])
    if (!tree) throw new TreeGoneError(run.id)
    return {
      treeId: tree.id,
      realm: { id: tree.realm_id, kind: tree.realm_kind },
      zone: tree.zone,
      persona,
      user: await this.#personas.user(run.owner_id, tree.user_persona_version_id),
    }
  }

  async conversation(run: RunRow, leafId: string, tokens: number): Promise<SourceNode[]> {
    for (let limit = FIRST_PAGE; ; limit *= PAGE_GROWTH) {
      const nodes = await this.#trees.path(run.owner_id, leafId, limit)
      const units = nodes.reduce((sum, node) => sum + (node.body?.length ?? 0), 0)
      if (nodes[0]?.depth === 1 || units >= tokens * UNITS_PER_TOKEN * PAGE_GROWTH || nodes.length < limit - 1) return nodes.map(sourceNode)
    }
  }

  async range(ownerId: string, fromNodeId: string, toNodeId: string): Promise<SourceNode[] | null> {
    const nodes = await this.#trees.range(ownerId, { fromId: fromNodeId, toId: toNodeId })
    return nodes.length === 0 ? null : nodes.map(sourceNode)
  }

  async citations(questionId: string): Promise<SourceCitation[]> {
    const rows = await this.#trees.citations([questionId])
    return rows
      .filter((row) => row.snapshot !== null)
      .map((row) => ({ citationId: row.id, contentId: row.snapshot_content_id, trust: row.source_trust }))
  }

  recall(input: Parameters<MemoryRecall['recall']>[0]): Promise<RecallAnswer> {
    return this.#memories.recall(input)
  }

  utcOffsetMinutes(zone: string, at: Date): number {
    return utcOffsetMinutes(zone, at)
  }
}

/** Minutes east of UTC, from the zone data alone: the wall clock there, read as if it were UTC, less the time itself. */
export function utcOffsetMinutes(zone: string, at: Date): number {
  const parts = wallClock(zone).formatToParts(at)
  const read = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.find((part) => part.type === type)?.value ?? 0)
  const wall = Date.UTC(read('year'), read('month') - 1, read('day'), read('hour'), read('minute'), read('second'))
  return Math.round((wall - at.getTime()) / 60_000)
}

/** There are some hundred zones; a format costs far more to make than to use. */
const wallClocks = new Map<string, Intl.DateTimeFormat>()

function wallClock(zone: string): Intl.DateTimeFormat {
  const known = wallClocks.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  wallClocks.set(zone, made)
  return made
}

/** The run's tree was deleted meanwhile. */
export class TreeGoneError extends Error {
  constructor(runId: string) {
    super(`the tree of run ${runId} is not there`)
    this.name = 'TreeGoneError'
  }
}

function sourceNode(node: PathNode): SourceNode {
  const digest = node.body === null || node.salt === null ? null : Buffer.from(saltedDigest(node.salt, node.body)).toString('hex')
  return {
    node_id: node.id,
    parent_id: node.parent_id,
    tree_id: node.tree_id,
    owner_id: node.owner_id,
    role: node.role,
    parts: partsOf(node),
    content_id: node.content_id,
    digest,
    trust: node.trust,
    isGreeting: isGreeting(node),
    partial: node.partial,
    deleted: node.deleted || node.body === null,
  }
}

/** What a card says first, before anybody asked. */
export function isGreeting(node: Pick<PathNode, 'depth' | 'author' | 'run_id'>): boolean {
  return node.depth === 1 && node.author === 'character' && node.run_id === null
}
