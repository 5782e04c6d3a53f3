import { admit } from '#kernel/admission/admit'
import type { AnchorSigner } from '#kernel/record/anchor'
import { encodeDecision } from '#kernel/tasks/policy-decision'
import { ActionPlane } from '#domains/tasks/action-plane'
import { AttemptKeeper } from '#domains/tasks/attempt-keeper'
import { AttemptSweeper } from '#domains/tasks/attempt-sweeper'
import { CompletionService } from '#domains/tasks/completion.service'
import { DelegationService } from '#domains/tasks/delegation.service'
import type { TaskDeps, TaskPolicy } from '#domains/tasks/deps'
import { EvidencePackages } from '#domains/tasks/evidence-packages'
import { TaskRetention } from '#domains/tasks/task-retention'
import { TaskService } from '#domains/tasks/task.service'
import { Verifiers } from '#domains/tasks/verifiers'
import { CharacterRepository } from '#infra/prisma/character.repository'
import { ProfileRepository } from '#infra/prisma/profile.repository'
import { TaskRepository } from '#infra/prisma/task.repository'
import { commandChannel } from '#runtime/turn/run-inbox'
import type { Bundles } from '#runtime/turn/context-projector'
import type { Conversation } from './compose-conversation.ts'
import type { Memory } from './compose-memory.ts'
import type { Model } from './compose-model.ts'
import type { Foundation } from './foundation.ts'
import type { Tools } from './compose-tools.ts'
import { composeRuntimes } from './compose-runtimes.ts'

export type Tasks = {
  tasks: TaskService
  keeper: AttemptKeeper
  sweeper: AttemptSweeper
  delegations: DelegationService
  retention: TaskRetention
  store: TaskRepository
}

/** Tokens kept for a model's verdict on a candidate. */
const VERDICT_TOKENS = 256

/** Admission's own verdict, as the message that a policy answers with. */
const admissionPolicy: TaskPolicy = { evaluate: (actionId, facts) => Promise.resolve(encodeDecision(actionId, admit(facts))) }

/** Delegated work (天工): its control plane, its runtimes, and what looks after both. */
export async function composeTasks(
  foundation: Foundation,
  parts: {
    conversation: Conversation
    memory: Memory
    model: Model
    bundles: Pick<Bundles, 'active'>
    policy?: TaskPolicy | undefined
    handOnTo: Tools['handOnTo']
    signer: AnchorSigner
  },
): Promise<Tasks> {
  const { conversation, memory, model, bundles, policy = admissionPolicy } = parts
  const { config, database, log, contents, clock, ids, scheduler, lifecycle, logger } = foundation
  const { host, holder, seats, maintenance } = conversation
  const store = new TaskRepository(database)
  const profiles = new ProfileRepository({ database, ids })
  const characters = new CharacterRepository(database)
  const deps: TaskDeps = {
    unitOfWork: database,
    store,
    runs: host.runs,
    contents,
    log,
    clock,
    ids,
    scheduler,
    actions: host.actions,
    policy,
    process: { holder, alone: config.tier === 'light' },
    profile: (ownerId, profile) => profiles.keep(ownerId, profile),
    endWaiting: (run) => seats.endQueued(run, { tag: 'cancel', settled_tokens: 0 }),
    announce: (runId) => host.fanout.publish(commandChannel(runId), 'cancel'),
    report: (error, id) => logger.error({ err: error, id }, 'a task met an error of ours'),
  }
  const plane = new ActionPlane(deps)
  let sweeper: AttemptSweeper | null = null
  const runtimes = await composeRuntimes(foundation, {
    deps,
    conversation,
    model,
    memory,
    bundles,
    take: (attempt) => sweeper?.take(attempt),
  })
  const keeper = new AttemptKeeper({ deps, plane, runtimes: runtimes.adapters, schedule: runtimes.schedule })
  const delegations = new DelegationService(deps, keeper)
  parts.handOnTo(delegations)
  const evidence = new EvidencePackages({ ...deps, signer: parts.signer })
  const verifiers = new Verifiers({
    deps,
    plane,
    judge: {
      ask: (question) =>
        maintenance.ask({
          ...question,
          purpose: 'verification',
          replyTokens: Math.min(VERDICT_TOKENS, Math.floor(config.model.windowTokens / 4)),
        }),
    },
  })
  const completion = new CompletionService({ deps, keeper, verifiers, evidence })
  const retention = new TaskRetention(deps)
  const looped = runtimes.connect({ keeper, completion })
  const swept = new AttemptSweeper({ deps, keeper, looped, retention })
  sweeper = swept
  conversation.onRequeued((run) => {
    if (run.kind === 'delegated') swept.wake(run.id)
  })
  lifecycle.addWork({
    name: 'tasks',
    role: 'worker',
    start: async () => {
      await swept.start()
      return async () => {
        looped.stop()
        await swept.stop()
      }
    },
  })
  const tasks = new TaskService({
    deps,
    plane,
    keeper,
    completion,
    evidence,
    hasCharacter: async (ownerId, characterId) => (await characters.find(ownerId, characterId)) !== null,
  })
  return { tasks, keeper, sweeper: swept, delegations, retention, store }
}
