import type { Logger } from 'pino'
import type { OwnerView, SessionView } from '#contracts'
import { demoCardSource } from '#domains/characters/demo-card'
import type { ToolSourcesService } from '#domains/tools/tool-sources.service'
import type { Config } from '#infra/config/config'
import { JoinedCatalogue } from '#infra/executors/catalogue'
import type { Plugin } from '#runtime/bus/plugin'
import { PluginHost } from '#runtime/bus/plugin-host'
import { RELEASE_BUNDLE } from '#runtime/turn/context-projector'
import { IdempotencyRepository } from '#infra/prisma/idempotency.repository'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import { Idempotency } from '../http/idempotency.ts'
import { composeCharacters } from './compose-characters.ts'
import { composeConversation } from './compose-conversation.ts'
import type { Conversation } from './compose-conversation.ts'
import { composeGovernance } from './compose-governance.ts'
import { composeIdentity } from './compose-identity.ts'
import { composeMemory } from './compose-memory.ts'
import type { Memory } from './compose-memory.ts'
import { composeModel } from './compose-model.ts'
import { composeRecord } from './compose-record.ts'
import type { RecordParts } from './compose-record.ts'
import { composeTasks } from './compose-tasks.ts'
import type { Tasks } from './compose-tasks.ts'
import { composeTools } from './compose-tools.ts'
import { composeTransport } from './compose-transport.ts'
import { composeWorlds } from './compose-worlds.ts'
import { composeAfterRestore } from './compose-after-restore.ts'
import { describeInstance } from './describe-instance.ts'
import { layFoundation } from './foundation.ts'
import type { Foundation, Overrides } from './foundation.ts'
import { seed, seedInstance } from './seed.ts'
import { tidyUp } from './tidy-up.ts'

/** A running Lingtai without its edge: the same for the server, the worker, the command line and tests. */
export type System = Foundation & {
  instance: SessionView['instance']
  firstOwner: OwnerView
  idempotency: Idempotency
  identity: ReturnType<typeof composeIdentity>
  worlds: ReturnType<typeof composeWorlds>
  characters: ReturnType<typeof composeCharacters>
  governance: ReturnType<typeof composeGovernance>
  conversation: Conversation
  record: RecordParts
  memory: Memory
  /** What tools there are, and what they do. */
  tools: ToolCatalogue
  toolSources: ToolSourcesService
  tasks: Tasks
  /** Ends every part; the database last. */
  close(): Promise<void>
}

/**
 * Opens the tier's database, migrates and seeds it, and puts the parts together. Nothing is listening and nothing is working yet: see
 * startHttpServer and Lifecycle.startWork. Throws what opening the database throws (HomeInUseError, MigrationFailedError …).
 */
export async function composeSystem({
  config,
  logger,
  overrides = {},
  plugins: given = [],
}: {
  config: Config
  logger: Logger
  overrides?: Overrides
  /** Who may listen to runs. A fresh instance's first bundle lists them in this order; later ones are activated by people (K8). */
  plugins?: readonly Plugin[]
}): Promise<System> {
  const foundation = await layFoundation({ config, logger, overrides })
  const { lifecycle, database, clock, ids } = foundation
  try {
    await seedInstance(foundation)
    const plugins = new PluginHost({
      plugins: given,
      scheduler: foundation.scheduler,
      report: (error, plugin) => logger.warn({ err: error, plugin }, 'a plugin failed, which counts as its no'),
    })
    const worlds = composeWorlds(foundation)
    const transport = composeTransport(foundation)
    const memory = await composeMemory(foundation, transport)
    const characters = composeCharacters(foundation, { ...worlds, upkeep: memory.upkeep })
    const identity = composeIdentity(foundation, async (ownerId) => {
      await worlds.realms.createReal(ownerId)
      await characters.createDemo(ownerId, Buffer.from(demoCardSource))
    })
    const record = composeRecord(foundation)
    const governance = composeGovernance(foundation)
    const model = await composeModel(foundation)
    const tools = await composeTools(foundation, memory)
    const catalogue = overrides.tools ? new JoinedCatalogue({ builtin: [], others: [overrides.tools, tools.catalogue] }) : tools.catalogue
    const conversation = composeConversation(foundation, {
      transport,
      model,
      recall: memory.recall,
      embeddingMicros: memory.embeddingMicros,
      canon: memory.canon,
      verify: record.verify,
      tools: catalogue,
      leaveRun: tools.leaveRun,
      bundles: governance.bundles,
      plugins,
    })
    const firstOwner = await seed(identity.owners)
    await governance.bundles.release(plugins.listed.length === 0 ? RELEASE_BUNDLE : { ...RELEASE_BUNDLE, plugins: plugins.listed })
    memory.connect(conversation.maintenance)
    const tasks = await composeTasks(foundation, {
      conversation,
      memory,
      model,
      bundles: governance.bundles,
      policy: overrides.policy,
      handOnTo: tools.handOnTo,
      signer: record.signer,
    })
    composeAfterRestore(foundation, { memory, characters, paths: conversation.paths })
    const idempotency = new Idempotency({ unit: database, store: new IdempotencyRepository(database), clock, ids })
    lifecycle.addWork(
      tidyUp({
        foundation,
        tasks: [() => idempotency.tidy(), () => identity.signin.tidy(), async () => void (await memory.upkeep.eraseExpired())],
      }),
    )
    return {
      ...foundation,
      instance: describeInstance({
        config,
        version: foundation.version,
        embedder: config.embedding === null ? { name: 'lexical', lexical: true } : { name: config.embedding.model, lexical: false },
      }),
      firstOwner,
      idempotency,
      identity,
      worlds,
      characters,
      governance,
      conversation,
      record,
      memory,
      tools: catalogue,
      toolSources: tools.sources,
      tasks,
      close: () => lifecycle.close(),
    }
  } catch (error) {
    await lifecycle.close()
    throw error
  }
}
