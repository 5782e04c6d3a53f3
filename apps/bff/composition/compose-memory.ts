import { Embeddings } from '#domains/memory/embeddings'
import { ModelUnreachableError } from '#domains/memory/extraction-asker'
import { ExtractionProgress } from '#domains/memory/extraction-progress'
import { ExtractionService, ExtractionStoppedError } from '#domains/memory/extraction.service'
import { MemoryService } from '#domains/memory/memory.service'
import { MemoryUpkeep } from '#domains/memory/memory-upkeep.service'
import { queryTexts } from '#domains/memory/query'
import { RecallService } from '#domains/memory/recall.service'
import type { RealmStore } from '#domains/worlds/ports'
import type { MemoryRecall } from '#domains/mirror-tree/context-sources'
import type { CanonListener } from '#domains/mirror-tree/path.service'
import { MemoryExtractionRepository } from '#infra/prisma/memory-extraction.repository'
import { checkVectorSettings, MemoryIndexRepository } from '#infra/prisma/memory-index.repository'
import { MemoryRecallRepository } from '#infra/prisma/memory-recall.repository'
import { MemoryRepository } from '#infra/prisma/memory.repository'
import { OutboxRepository } from '#infra/prisma/outbox.repository'
import { RecallAuditRepository } from '#infra/prisma/recall-audit.repository'
import { RealmRepository } from '#infra/prisma/worlds.repository'
import { JobAwayError, JobRunner, JobStoppedError } from '#runtime/jobs/job-runner'
import type { JobHandler } from '#runtime/jobs/job-runner'
import type { MaintenanceRuns } from '#runtime/turn/maintenance-runs'
import { composeEmbedder } from './compose-embedder.ts'
import type { Transport } from './compose-transport.ts'
import { fillVectors } from './fill-vectors.ts'
import type { Foundation } from './foundation.ts'

export type Memory = {
  memories: MemoryService
  extractions: ExtractionProgress
  recalls: RecallService
  upkeep: MemoryUpkeep
  jobs: JobRunner
  recall: MemoryRecall
  canon: CanonListener
  /** Given once the conversation is composed: extraction asks the model through runs of its own. */
  connect(maintenance: MaintenanceRuns): void
  /** Another kind of job, before work begins. */
  handle(topic: string, handler: JobHandler): void
  /** What a run's embeddings were charged so far, in micro-units. */
  embeddingMicros(runId: string): Promise<number>
  /** A job whose work is done elsewhere. */
  closeJob(id: string): Promise<void>
}

/** Jobs of one process at once; each waits mostly for the model. */
const JOBS_AT_ONCE = 4
const EXTRACT = 'memory.extract'
/** Tokens for an extraction's answer. */
const ANSWER_TOKENS = 1_024

/** Memory (息壤): recall for prompts, the inbox, extraction after canonizing, and what follows deletions. */
export async function composeMemory(foundation: Foundation, transport: Transport): Promise<Memory> {
  const { config, database, contents, log, clock, ids, scheduler, lifecycle, logger } = foundation
  const report = (error: unknown): void => logger.warn({ err: error }, 'memory met a fault')
  const store = new MemoryRepository(database)
  const index = new MemoryIndexRepository(database)
  await checkVectorSettings(database)
  const { embedder, spentBy } = await composeEmbedder(foundation, {
    knownDimensions: async (model) => (await index.spaces()).findLast((space) => space.model === model)?.dimensions ?? null,
  })
  const embeddings = new Embeddings({
    embedder,
    index,
    unitOfWork: database,
    clock,
    report,
    mayWait: () => config.embedding === null || !database.inTransaction,
  })
  await embeddings.start()
  lifecycle.addWork(fillVectors({ foundation, embeddings }))
  const change = { store, index, embeddings, contents, log, ids }
  const recalls = new RecallService({
    recaller: new MemoryRecallRepository(database),
    audits: new RecallAuditRepository(database),
    embeddings,
    unitOfWork: database,
    clock,
    ids,
  })
  const upkeep = new MemoryUpkeep({
    ...change,
    unitOfWork: database,
    clock,
    report: (error, memoryId) => logger.error({ err: error, memory: memoryId }, 'a text could not be erased; it is tried again'),
  })
  let maintenance: MaintenanceRuns | null = null
  const extractions = new MemoryExtractionRepository(database)
  const extraction = new ExtractionService({
    ...change,
    extractions,
    recaller: new MemoryRecallRepository(database),
    unitOfWork: database,
    clock,
    model: {
      ask: (question) => {
        if (!maintenance) throw new Error('extraction has no model yet')
        return maintenance.ask({ ...question, replyTokens: Math.min(ANSWER_TOKENS, Math.floor(config.model.windowTokens / 4)) })
      },
    },
  })
  const outbox = new OutboxRepository(database)
  const handlers: Record<string, JobHandler> = {
    [EXTRACT]: async (row, { isLast, isLastAway, signal }) => {
      try {
        await extraction.extract(row.payload['canonization_id'] ?? '', {
          onEnd: async ({ outcome }) => void (await outbox.close(row.id, outcome === 'finished' ? 'done' : 'given_up')),
          lastAttempt: isLast,
          lastHope: isLastAway,
          signal,
        })
      } catch (error) {
        if (error instanceof ExtractionStoppedError) throw new JobStoppedError(error.message, { cause: error })
        if (error instanceof ModelUnreachableError) throw new JobAwayError(error.message, { cause: error })
        throw error
      }
    },
  }
  const jobs = new JobRunner({
    outbox,
    queue: transport.queue,
    unitOfWork: database,
    ids,
    scheduler,
    handlers,
    report: (error, topic) => logger.error({ err: error, topic }, 'a job failed'),
  })
  lifecycle.addWork({
    name: 'jobs',
    role: 'worker',
    start: async () => {
      await jobs.start(JOBS_AT_ONCE)
      return () => jobs.stop()
    },
  })
  const extractLater = ({ id, ownerId }: { id: string; ownerId: string }): Promise<void> =>
    jobs.add({ topic: EXTRACT, ownerId, payload: { canonization_id: id } })
  return {
    extractions: new ExtractionProgress({ unitOfWork: database, extractions, log, clock, enqueue: extractLater }),
    memories: new MemoryService({ ...change, unitOfWork: database, clock, recall: recalls }),
    recalls,
    upkeep,
    jobs,
    recall: recallOf(recalls, new RealmRepository(database)),
    canon: {
      canonized: extractLater,
      withdrawn: ({ id, ownerId }) => upkeep.canonWithdrawn(ownerId, id),
      nodesDeleted: ({ ids: nodeIds, ownerId }) => upkeep.nodesDeleted(ownerId, nodeIds),
    },
    connect: (runs) => {
      maintenance = runs
    },
    handle: (topic, handler) => {
      handlers[topic] = handler
    },
    embeddingMicros: spentBy,
    closeJob: async (id) => void (await outbox.close(id, 'done')),
  }
}

/** Recall as a prompt wants it: texts with references, and what the gate reads of each. */
function recallOf(recalls: RecallService, realms: RealmStore): MemoryRecall {
  return {
    recall: async ({ run, realmId, queries }) => {
      const { items, auditId } = await recalls.recall({
        owner_id: run.owner_id,
        character_id: run.character_id,
        realm_id: realmId,
        queries: queryTexts({ message: queries.question, dialogue: queries.dialogue }),
        runId: run.id,
        queryContentIds: queries.contentIds,
      })
      const owned = items.length === 0 ? [] : await realms.list(run.owner_id)
      const kinds = new Map(owned.map((realm) => [realm.id, realm.kind]))
      return {
        auditId,
        memories: items.map((item) => ({
          memoryId: item.memoryId,
          versionId: item.versionId,
          text: item.text,
          contentRef: item.masked ? null : { content_id: item.contentId, digest: item.contentDigest },
          derivedFrom: item.masked ? [item.contentId] : [],
          trust: item.trust,
        })),
        facts: items.map((item) => ({ contentId: item.contentId, realm: kinds.get(item.realmId) ?? 'unknown' })),
      }
    },
  }
}
