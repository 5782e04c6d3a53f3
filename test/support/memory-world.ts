/** Owners, characters, conversations and canon by plain rows, and the memory slice on them with a model that answers as it is told. */
import type { ExtractionProposal, Trust } from '#contracts'
import { Embeddings } from '#domains/memory/embeddings'
import { ExtractionService } from '#domains/memory/extraction.service'
import type { ChangeDeps } from '#domains/memory/memory-change'
import { MemoryService } from '#domains/memory/memory.service'
import { MemoryUpkeep } from '#domains/memory/memory-upkeep.service'
import type { MemoryModel, MemoryQuestion, Scope } from '#domains/memory/ports'
import type { RecallProfile } from '#domains/memory/recall-profile'
import { RecallService } from '#domains/memory/recall.service'
import { ContentRepository } from '#infra/prisma/content.repository'
import { EventLogRepository } from '#infra/prisma/event-log.repository'
import { MemoryExtractionRepository } from '#infra/prisma/memory-extraction.repository'
import { MemoryIndexRepository } from '#infra/prisma/memory-index.repository'
import { MemoryRecallRepository } from '#infra/prisma/memory-recall.repository'
import { MemoryRepository } from '#infra/prisma/memory.repository'
import { RecallAuditRepository } from '#infra/prisma/recall-audit.repository'
import type { Database } from '#infra/prisma/database'
import type { SystemIds } from '#infra/system/clock'
import type { Embedder, EmbeddingCause } from '#kernel/ports/embedder'
import { createLexicalEmbedder } from '#model/lexical-embedder'
import { plantMemories } from './plant-memories.ts'

export type Person = Scope & { fiction: string }
export type Line = { role: 'user' | 'character'; text: string; at?: string; trust?: Trust; runId?: string; partial?: boolean }
export type Talk = { treeId: string; rootId: string; nodeIds: string[]; person: Person }

/** What a model is told to answer: objects travel as JSON. */
export type Answer = (question: MemoryQuestion) => unknown

export type Slice = {
  memories: MemoryService
  recalls: RecallService
  upkeep: MemoryUpkeep
  /** Memories whose text could not be erased, as told. */
  failed: readonly string[]
  extraction: ExtractionService
  embeddings: Embeddings
  store: MemoryRepository
  index: MemoryIndexRepository
  recaller: MemoryRecallRepository
  audits: RecallAuditRepository
  deps: ChangeDeps
  /** Every question that the model was asked. */
  questions: MemoryQuestion[]
  /** What the slice reported instead of throwing. */
  reports: unknown[]
  answer: (with_: Answer) => void
}

/** For embedders that record nothing. */
export const askedByNobody: EmbeddingCause = { purpose: 'recall', ownerId: null, characterId: null, runId: null }

/** A clock that stands still until it is moved. */
export class TestClock {
  #now: number
  constructor(now = '2026-06-01T12:00:00.000Z') {
    this.#now = Date.parse(now)
  }
  now = (): Date => new Date(this.#now)
  advance(by: { days: number }): void {
    this.#now += by.days * 86_400_000
  }
}

export class MemoryWorld {
  readonly database: Database
  readonly ids: SystemIds
  readonly clock: TestClock
  constructor({ database, ids, clock = new TestClock() }: { database: Database; ids: SystemIds; clock?: TestClock }) {
    this.database = database
    this.ids = ids
    this.clock = clock
  }

  /** The memory slice; `database` may be another pool on the same database. Its embeddings are started. */
  async slice(options: { database?: Database; embedder?: Embedder; profile?: Partial<RecallProfile> } = {}): Promise<Slice> {
    const { ids, clock } = this
    const database = options.database ?? this.database
    const log = new EventLogRepository(database)
    const contents = new ContentRepository({ database, log, ids, clock })
    const [store, index] = [new MemoryRepository(database), new MemoryIndexRepository(database)]
    const [recaller, audits] = [new MemoryRecallRepository(database), new RecallAuditRepository(database)]
    const reports: unknown[] = []
    const embeddings = new Embeddings({
      embedder: options.embedder ?? createLexicalEmbedder(),
      index,
      unitOfWork: database,
      clock,
      report: (error) => reports.push(error),
    })
    await embeddings.start()
    const questions: MemoryQuestion[] = []
    let answer: Answer = () => ({ proposals: [] })
    const model: MemoryModel = {
      ask: async (question) => {
        questions.push(question)
        const said = await answer(question)
        return { runId: ids.next(), contentId: ids.next(), text: typeof said === 'string' ? said : JSON.stringify(said) }
      },
    }
    const deps: ChangeDeps = { store, index, embeddings, contents, log, ids }
    const common = { ...deps, unitOfWork: database, clock }
    const failed: string[] = []
    const recalls = new RecallService({ recaller, audits, embeddings, unitOfWork: database, clock, ids, profile: options.profile })
    return {
      memories: new MemoryService({ ...common, recall: recalls }),
      recalls,
      upkeep: new MemoryUpkeep({ ...common, report: (_, memoryId) => void failed.push(memoryId) }),
      failed,
      extraction: new ExtractionService({ ...common, extractions: new MemoryExtractionRepository(database), recaller, model }),
      embeddings,
      store,
      index,
      recaller,
      audits,
      deps,
      questions,
      reports,
      answer: (with_) => {
        answer = with_
      },
    }
  }

  /** An owner with a real realm, a fiction realm and a character in the real one. */
  async person(): Promise<Person> {
    const { database, ids } = this
    const [ownerId, realId, fictionId] = [ids.next(), ids.next(), ids.next()]
    await database.execute(`INSERT INTO owners (id, name, role) VALUES ($1::uuid, $1, 'user')`, [ownerId])
    await database.execute(
      `INSERT INTO realms (id, owner_id, kind, name) VALUES ($1::uuid, $3::uuid, 'real', 'Earth'), ($2::uuid, $3::uuid, 'fiction', 'Elsewhere')`,
      [realId, fictionId, ownerId],
    )
    const person = { owner_id: ownerId, realm_id: realId, character_id: '', fiction: fictionId }
    return { ...person, character_id: await this.character(person) }
  }

  async character({ owner_id, realm_id }: Pick<Scope, 'owner_id' | 'realm_id'>): Promise<string> {
    const { database, ids } = this
    const [characterId, versionId] = [ids.next(), ids.next()]
    const card = await this.#content(owner_id, '{}')
    await database.run(async () => {
      await database.execute(
        `INSERT INTO characters (id, owner_id, name, realm_id, current_version_id) VALUES ($1::uuid, $2::uuid, 'Mira', $3::uuid, $4::uuid)`,
        [characterId, owner_id, realm_id, versionId],
      )
      await database.execute(
        `INSERT INTO persona_versions (id, owner_id, character_id, version, card_content_id, origin)
         VALUES ($1::uuid, $2::uuid, $3::uuid, 1, $4::uuid, 'authored')`,
        [versionId, owner_id, characterId, card],
      )
    })
    return characterId
  }

  /** A tree whose path is these lines; `realmId` is the person's real realm unless it is named. */
  async talk(person: Person, lines: readonly Line[], options: { realmId?: string; zone?: string } = {}): Promise<Talk> {
    const { database, ids } = this
    const [treeId, rootId] = [ids.next(), ids.next()]
    await database.run(async () => {
      await database.execute(
        `INSERT INTO trees (id, owner_id, title, realm_id, root_node_id, head_node_id, zone) VALUES ($1::uuid, $2::uuid, 'A talk', $3::uuid, $4::uuid, $4::uuid, $5)`,
        [treeId, person.owner_id, options.realmId ?? person.realm_id, rootId, options.zone ?? 'Asia/Shanghai'],
      )
      await database.execute(
        `INSERT INTO nodes (id, tree_id, owner_id, parent_id, kind, role, seq, depth, sealed, author, trust, at)
         VALUES ($1::uuid, $2::uuid, $3::uuid, NULL, 'root', 'none', 0, 0, true, 'system', 'trusted', now())`,
        [rootId, treeId, person.owner_id],
      )
    })
    const talk: Talk = { treeId, rootId, nodeIds: [], person }
    for (const line of lines) talk.nodeIds.push(await this.say(talk, line, talk.nodeIds.at(-1) ?? rootId))
    return talk
  }

  /** One more node below another; what a run said stands below the run's question, under the run's id. */
  async say(talk: Talk, line: Line, parentId: string): Promise<string> {
    const { ids, clock } = this
    const { owner_id, character_id } = talk.person
    const id = line.runId ?? ids.next()
    await this.database.execute(
      `WITH tree AS (UPDATE trees SET node_seq = node_seq + 1 WHERE id = $2::uuid RETURNING node_seq)
       INSERT INTO nodes (id, tree_id, owner_id, parent_id, kind, role, seq, depth, sealed, partial, speaker_character_id, author, trust, content_id, run_id, at)
       SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5, $6, tree.node_seq, p.depth + 1, true, $7, $8::uuid, $9, $10, $11::uuid, $12::uuid, $13::timestamptz
       FROM tree, nodes p WHERE p.id = $4::uuid`,
      [
        id,
        talk.treeId,
        owner_id,
        parentId,
        line.role === 'user' ? 'question' : 'candidate',
        line.role,
        line.partial ?? false,
        line.role === 'user' ? null : character_id,
        line.role === 'user' ? 'owner' : 'character',
        line.trust ?? (line.role === 'user' ? 'trusted' : 'workspace'),
        await this.#content(owner_id, line.text, line.runId),
        line.runId ?? null,
        line.at ? new Date(line.at) : clock.now(),
      ],
    )
    return id
  }

  /** Canon from the root, or from a node, to a candidate (the last one said unless it is named). */
  async canonize(talk: Talk, range: { from?: string; to?: string } = {}): Promise<string> {
    const id = this.ids.next()
    await this.database.execute(
      `INSERT INTO canonizations (id, owner_id, tree_id, character_id, from_node_id, to_node_id)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6::uuid)`,
      [id, talk.person.owner_id, talk.treeId, talk.person.character_id, range.from ?? talk.rootId, range.to ?? talk.nodeIds.at(-1) ?? ''],
    )
    return id
  }

  async withdraw(canonizationId: string): Promise<void> {
    await this.database.execute('UPDATE canonizations SET withdrawn_at = now() WHERE id = $1::uuid', [canonizationId])
  }

  async deleteNode(nodeId: string): Promise<void> {
    await this.database.execute('UPDATE nodes SET deleted_at = now() WHERE id = $1::uuid', [nodeId])
  }

  /** A finished run of the character, for recalls to belong to: in no tree, or where `place` says, with its candidate under the same id. */
  async run(person: Person, place: { treeId: string; questionId: string | null } | null = null): Promise<string> {
    const id = this.ids.next()
    await this.database.execute(
      `INSERT INTO runs (id, owner_id, kind, seated, character_id, tree_id, question_id, candidate_id, state, protocol_version, reducer_version, trace_id, ended_at)
       VALUES ($1::uuid, $2::uuid, 'answer', true, $3::uuid, $4::uuid, $5::uuid, $1::uuid, 'finished', 1, 1, $1::uuid, now())`,
      [id, person.owner_id, person.character_id, place?.treeId ?? null, place?.questionId ?? null],
    )
    return id
  }

  /**
   * Memories as extraction makes them: each from a talk of its own that is canonized. Heavy ones wait as proposals. Answers their ids in
   * order; null for one that was not stored.
   */
  async remember(
    slice: Slice,
    person: Person,
    texts: readonly (string | Partial<ExtractionProposal>)[],
    options: { realmId?: string; at?: string } = {},
  ): Promise<string[]> {
    const remembered: string[] = []
    for (const item of texts) {
      const proposal = typeof item === 'string' ? { content: item } : item
      const talk = await this.talk(
        person,
        [
          { role: 'user', text: proposal.content ?? '', at: options.at },
          { role: 'character', text: 'I see.', at: options.at },
        ],
        { realmId: options.realmId },
      )
      const canonizationId = await this.canonize(talk)
      slice.answer((question) => (question.purpose === 'dedupe' ? storeAll(question) : proposed(talk.nodeIds[0] ?? '', proposal)))
      const before = await this.memoryIds(person)
      await slice.extraction.extract(canonizationId)
      const after = await this.memoryIds(person)
      remembered.push(...after.filter((id) => !before.includes(id)))
    }
    return remembered
  }

  /** Many live memories at once, as if they had been extracted from one talk. Answers their ids. */
  async plant(slice: Slice, person: Person, texts: readonly string[], options: { vectors?: boolean } = {}): Promise<string[]> {
    const talk = await this.talk(person, [
      { role: 'user', text: 'Many things.' },
      { role: 'character', text: 'Noted.' },
    ])
    const source = { tree_id: talk.treeId, node_id: talk.nodeIds[0] ?? '', canonization_id: await this.canonize(talk) }
    const space = options.vectors === false ? null : slice.embeddings.space
    const values = space ? (await slice.embeddings.embed(texts, askedByNobody)).flatMap((vector) => vector ?? []) : []
    return plantMemories(this, { scope: person, source, texts, vectors: space && { space, values }, at: this.clock.now() })
  }

  async memoryIds({ owner_id, character_id }: Pick<Scope, 'owner_id' | 'character_id'>): Promise<string[]> {
    const rows = await this.database.query<{ id: string }>(
      'SELECT id FROM memories WHERE owner_id = $1::uuid AND character_id = $2::uuid ORDER BY id',
      [owner_id, character_id],
    )
    return rows.map((row) => row.id)
  }

  /** Types and payloads of a character's memory stream, in order. */
  async events(person: Person): Promise<{ type: string; payload: Record<string, unknown> }[]> {
    return this.database.query('SELECT type, payload FROM events WHERE stream = $1 ORDER BY seq', [`memory:${person.character_id}`])
  }

  async count(table: string, where: string, params: readonly string[]): Promise<number> {
    const [row] = await this.database.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${table} WHERE ${where}`, params)
    return row?.count ?? 0
  }

  async #content(ownerId: string, text: string, id = this.ids.next()): Promise<string> {
    await this.database.execute(
      `INSERT INTO contents (id, owner_id, media_type, body, salt, digest, size) VALUES ($1::uuid, $2::uuid, 'text/plain', $3, sha256('salt'), sha256($4::bytea), 1)`,
      [id, ownerId, text, Buffer.from(text)],
    )
    return id
  }
}

/** An extraction's answer with proposals from a message, one unless more are given; fields as given, the rest harmless. */
export function proposed(nodeId: string, ...proposals: Partial<ExtractionProposal>[]): { proposals: ExtractionProposal[] } {
  return {
    proposals: (proposals.length > 0 ? proposals : [{}]).map((proposal) => ({
      content: 'likes tea',
      type: 'preference',
      priority: 0.5,
      confidence: 0.9,
      sensitive: false,
      source_message_ids: [nodeId],
      ...proposal,
    })),
  }
}

/** A dedupe's answer that takes every proposal for new. */
export function storeAll(question: MemoryQuestion): { decisions: { index: number; action: 'store'; target_ids: string[] }[] } {
  const { proposals } = requestOf(question)
  return { decisions: proposals.map(({ index }) => ({ index, action: 'store', target_ids: [] })) }
}

/** The JSON that a dedupe question holds. */
export function requestOf(question: MemoryQuestion): {
  proposals: { index: number; content: string }[]
  pool: { id: string; content: string }[]
} {
  const message = question.messages.find((item) => item.role === 'user')
  return JSON.parse(message?.content ?? '{}') as ReturnType<typeof requestOf>
}
