import { Module } from '@nestjs/common'
import type { DynamicModule, Type, ValueProvider } from '@nestjs/common'
import { CharactersService } from '#domains/characters/characters.service'
import { ApprovalsService } from '#domains/actions/approvals.service'
import { EffectsService } from '#domains/actions/effects.service'
import { GrantsService } from '#domains/actions/grants.service'
import { AuditService } from '#domains/governance/audit.service'
import { BundlesService } from '#domains/governance/bundles.service'
import { KillSwitchService } from '#domains/governance/kill-switch.service'
import { OwnersService } from '#domains/identity/owners.service'
import { SigninService } from '#domains/identity/signin.service'
import { TokensService } from '#domains/identity/tokens.service'
import { ExtractionProgress } from '#domains/memory/extraction-progress'
import { MemoryService } from '#domains/memory/memory.service'
import { RecallService } from '#domains/memory/recall.service'
import { AskService } from '#domains/mirror-tree/ask.service'
import { PathService } from '#domains/mirror-tree/path.service'
import { TreeService } from '#domains/mirror-tree/tree.service'
import { EvidenceService } from '#domains/record/evidence.service'
import { VerifyService } from '#domains/record/verify.service'
import { AdminRuns } from '#domains/runs/admin-runs.service'
import { ReplayService } from '#domains/runs/replay.service'
import { RunService } from '#domains/runs/run.service'
import { TaskService } from '#domains/tasks/task.service'
import { ToolSourcesService } from '#domains/tools/tool-sources.service'
import { LorebooksService } from '#domains/worlds/lorebooks.service'
import { RealmsService } from '#domains/worlds/realms.service'
import { UserPersonasService } from '#domains/worlds/user-personas.service'
import { ActionsController } from './actions/actions.controller.ts'
import { AdminRunsController } from './admin/admin-runs.controller.ts'
import { BundlesController } from './admin/bundles.controller.ts'
import { GovernanceController } from './admin/governance.controller.ts'
import { CharactersController } from './characters/characters.controller.ts'
import type { System } from './composition/compose-system.ts'
import { routesOf } from './http/api-route.ts'
import { MemoriesController } from './memory/memories.controller.ts'
import { ApiDocument, DocsController } from './openapi/docs.controller.ts'
import { openApiDocument } from './openapi/document.ts'
import { Operations, OperationsController } from './operations/operations.controller.ts'
import { OwnersController } from './owners/owners.controller.ts'
import { RunStreams } from './runs/run-streams.ts'
import { RunsController } from './runs/runs.controller.ts'
import { Instance, SessionController } from './session/session.controller.ts'
import { TokensController } from './tokens/tokens.controller.ts'
import { NodesController } from './trees/nodes.controller.ts'
import { TreesController } from './trees/trees.controller.ts'
import { TasksController } from './tasks/tasks.controller.ts'
import { ToolsController } from './tools/tools.controller.ts'
import { WorldsController } from './worlds/worlds.controller.ts'

/** What every process answers, a worker too. */
const operationsControllers: Type<object>[] = [OperationsController]

/** The API. */
const apiControllers: Type<object>[] = [
  SessionController,
  TokensController,
  OwnersController,
  CharactersController,
  WorldsController,
  TreesController,
  NodesController,
  RunsController,
  MemoriesController,
  ToolsController,
  ActionsController,
  TasksController,
  GovernanceController,
  BundlesController,
  AdminRunsController,
  DocsController,
]

/** The controllers of a process. */
export function controllersOf({ api }: { api: boolean }): Type<object>[] {
  return api ? [...apiControllers, ...operationsControllers] : operationsControllers
}

/** The system's services as NestJS providers, by their classes. */
function providersOf(system: System, document: ApiDocument): ValueProvider<unknown>[] {
  const { identity, worlds, governance, conversation, lifecycle, metrics, clock } = system
  const instances: (readonly [Type<unknown>, unknown])[] = [
    [SigninService, identity.signin],
    [TokensService, identity.tokens],
    [OwnersService, identity.owners],
    [CharactersService, system.characters],
    [RealmsService, worlds.realms],
    [UserPersonasService, worlds.personas],
    [LorebooksService, worlds.lorebooks],
    [TreeService, conversation.trees],
    [PathService, conversation.paths],
    [AskService, conversation.asks],
    [RunService, conversation.runs],
    [RunStreams, conversation.streams],
    [ReplayService, conversation.replays],
    [MemoryService, system.memory.memories],
    [ExtractionProgress, system.memory.extractions],
    [RecallService, system.memory.recalls],
    [ToolSourcesService, system.toolSources],
    [ApprovalsService, conversation.actions.approvals],
    [EffectsService, conversation.actions.effects],
    [GrantsService, conversation.actions.grants],
    [TaskService, system.tasks.tasks],
    [AdminRuns, conversation.adminRuns],
    [VerifyService, conversation.verify],
    [EvidenceService, system.record.evidence],
    [KillSwitchService, governance.killSwitch],
    [BundlesService, governance.bundles],
    [AuditService, governance.audit],
    [Instance, new Instance({ view: system.instance, clock })],
    [Operations, new Operations({ checks: lifecycle.readiness, stopping: lifecycle.stopping, metrics })],
    [ApiDocument, document],
  ]
  return instances.map(([provide, useValue]) => ({ provide, useValue }))
}

/** The edge over a composed system: NestJS knows the controllers, the system knows how its parts hang together. */
@Module({})
export class AppModule {
  static of(system: System, { api }: { api: boolean }): DynamicModule {
    const controllers = controllersOf({ api })
    const document = new ApiDocument(() => openApiDocument({ routes: routesOf(controllers), version: system.version }))
    return { module: AppModule, controllers, providers: providersOf(system, document) }
  }
}
