import { hostname } from 'node:os'
import { AskService } from '#domains/mirror-tree/ask.service'
import { TreeContextSources } from '#domains/mirror-tree/context-sources'
import type { MemoryRecall } from '#domains/mirror-tree/context-sources'
import { InvariantRecord } from '#domains/mirror-tree/invariant-record'
import { NodeViews } from '#domains/mirror-tree/node-views'
import { PathService } from '#domains/mirror-tree/path.service'
import type { CanonListener } from '#domains/mirror-tree/path.service'
import { TreeSproutKeeper } from '#domains/mirror-tree/sprout-keeper'
import { TreeService } from '#domains/mirror-tree/tree.service'
import { PersonaReader } from '#domains/characters/persona-reader'
import { AdminRuns } from '#domains/runs/admin-runs.service'
import { ReplayService } from '#domains/runs/replay.service'
import { RunService } from '#domains/runs/run.service'
import { RunStreamReader } from '#domains/runs/run-stream'
import type { BundlesService } from '#domains/governance/bundles.service'
import type { VerifyService } from '#domains/record/verify.service'
import { PersonaRepository } from '#infra/prisma/persona.repository'
import { GrantRepository } from '#infra/prisma/grant.repository'
import { ProfileRepository } from '#infra/prisma/profile.repository'
import { RunRepository } from '#infra/prisma/run.repository'
import { TreeRepository } from '#infra/prisma/tree.repository'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import type { PluginHost } from '#runtime/bus/plugin-host'
import { SeatKeeper } from '#runtime/seat/seat-keeper'
import { RunContextProjector } from '#runtime/turn/context-projector'
import { leastCost } from '#runtime/turn/granted-tools'
import { RunAppender } from '#runtime/turn/run-appender'
import { MaintenanceRuns } from '#runtime/turn/maintenance-runs'
import { RequestBuilder } from '#runtime/turn/request-builder'
import type { RunHostDeps } from '#runtime/turn/run-deps'
import { RunSealer } from '#runtime/turn/run-sealer'
import { RunSuspender } from '#runtime/turn/run-suspender'
import { RunStreams } from '../runs/run-streams.ts'
import { composeActionDeps, composeActions } from './compose-actions.ts'
import type { Actions, RequeuedRun } from './compose-actions.ts'
import type { Model } from './compose-model.ts'
import type { Transport } from './compose-transport.ts'
import type { Foundation } from './foundation.ts'

export type Conversation = {
  trees: TreeService
  paths: PathService
  asks: AskService
  runs: RunService
  streams: RunStreams
  replays: ReplayService
  adminRuns: AdminRuns
  verify: VerifyService
  seats: SeatKeeper
  maintenance: MaintenanceRuns
  runStore: RunRepository
  treeStore: TreeRepository
  sources: TreeContextSources
  projector: RunContextProjector
  actions: Actions
  /** What running any kind of run takes. */
  host: RunHostDeps
  /** Names this process in leases and claims. */
  holder: string
  requests: RequestBuilder
  /** Told of a run that has what it waited for; after the commit. */
  onRequeued(listener: (run: RequeuedRun) => void): void
}

/** Trees, runs and the seat: the walk of a turn, put together (spec/1). */
export function composeConversation(
  foundation: Foundation,
  parts: {
    transport: Transport
    model: Model
    recall: MemoryRecall
    /** What a run's embeddings were charged so far, in micro-units. */
    embeddingMicros(runId: string): Promise<number>
    canon: CanonListener
    verify: VerifyService
    tools: ToolCatalogue
    leaveRun: RunHostDeps['leaveRun']
    bundles: BundlesService
    plugins: PluginHost
  },
): Conversation {
  const { config, database, log, contents, clock, ids, scheduler, lifecycle, logger } = foundation
  const { transport, model } = parts
  const { fanout, seat } = transport
  const trees = new TreeRepository(database)
  const runs = new RunRepository(database)
  const personas = new PersonaReader({ versions: new PersonaRepository(database), contents })
  const profiles = new ProfileRepository({ database, ids })
  const views = new NodeViews({ trees, runs, log, contents })
  const invariants = new InvariantRecord({ unitOfWork: database, log, clock })
  const sources = new TreeContextSources({ trees, personas, memories: parts.recall })
  const sprouts = new TreeSproutKeeper({ trees, log, clock })
  const requests = new RequestBuilder({
    contents,
    ids,
    model: model.choice,
    secrets: model.secrets,
    embeddingMicros: (runId) => parts.embeddingMicros(runId),
  })
  const projector = new RunContextProjector({
    sources,
    contents,
    clock,
    model: model.choice,
    requests,
    profile: (ownerId, profile) => profiles.keep(ownerId, profile),
    bundles: parts.bundles,
    costBound: (run) => leastCost(new GrantRepository(database), run),
  })
  // One boot is one holder; on the light tier a run of any other boot is known to be dead (decision 4).
  const boot = `${hostname().slice(0, 40)}:${process.pid}:${ids.next()}`
  const actionDeps = composeActionDeps(foundation, {
    catalogue: parts.tools,
    holder: boot,
    guards: async (bundle) => {
      const content = bundle === null ? (await parts.bundles.active()).content : await parts.bundles.of(bundle)
      return parts.plugins.guards(content.plugins ?? [])
    },
  })
  const hostDeps = {
    unitOfWork: database,
    log,
    runs,
    contents,
    sprouts,
    appender: new RunAppender(log),
    sealer: new RunSealer({ unitOfWork: database, log, runs, contents, sprouts, actions: actionDeps, clock, ids }),
    suspender: new RunSuspender({ unitOfWork: database, log, runs, contents, actions: actionDeps, clock }),
    actions: actionDeps,
    projector,
    gateway: model.gateway,
    quirks: model.quirks,
    fanout,
    clock,
    ids,
    scheduler,
    retryDelay: model.retryDelay,
    leaveRun: parts.leaveRun,
    report: (error: unknown, runId: string) => logger.error({ err: error, run: runId }, 'a run met an error of ours'),
  }
  const seats = new SeatKeeper({ seat, holder: boot, alone: config.tier === 'light', deps: hostDeps })
  const maintenance = new MaintenanceRuns({
    host: hostDeps,
    requests,
    model: model.choice,
    holder: `${boot}:jobs`,
    profile: (ownerId, profile) => profiles.keep(ownerId, profile),
    bundles: parts.bundles,
  })
  lifecycle.addWork({
    name: 'seats',
    role: 'bff',
    start: async () => {
      await seats.start()
      return () => seats.stop()
    },
  })
  const streams = new RunStreams({ reader: new RunStreamReader({ log, runs, contents }), runs, fanout })
  lifecycle.stopping.addEventListener('abort', () => streams.close())
  const replays = new ReplayService({ log, contents, runs, sources, demoModel: config.model.demo ? config.model.name : null })
  const service = new RunService({
    unitOfWork: database,
    runs,
    contents,
    log,
    fanout,
    maxSteers: async () => (await parts.bundles.active()).content.limits.max_steers,
    trees: { title: async (ownerId, treeId) => (await trees.find(ownerId, treeId))?.title ?? null },
    ids,
    endQueued: (run) => seats.endQueued(run, { tag: 'cancel', settled_tokens: 0 }),
  })
  const requeued: ((run: RequeuedRun) => void)[] = []
  const wake = (run: RequeuedRun): void => {
    seat.announce(run.character_id)
    for (const listener of requeued) listener(run)
  }
  return {
    trees: new TreeService({ unitOfWork: database, trees, runs, contents, log, views, characters: personas, clock, ids }),
    paths: new PathService({ unitOfWork: database, trees, contents, log, views, invariants, canon: parts.canon, clock, ids }),
    asks: new AskService({
      unitOfWork: database,
      trees,
      runs,
      checkpoints: actionDeps.checkpoints,
      contents,
      log,
      seat,
      views,
      invariants,
      clock,
      ids,
      scheduler,
    }),
    runs: service,
    streams,
    replays,
    adminRuns: new AdminRuns({ unitOfWork: database, runs, log, clock, service, replays, names: runs }),
    verify: parts.verify,
    seats,
    maintenance,
    runStore: runs,
    treeStore: trees,
    sources,
    projector,
    actions: composeActions(foundation, { deps: actionDeps, runs, trees, wake }),
    host: hostDeps,
    holder: boot,
    requests,
    onRequeued: (listener) => void requeued.push(listener),
  }
}
