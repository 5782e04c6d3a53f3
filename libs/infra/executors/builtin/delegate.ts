import { z } from 'zod'
import type { Delegation, DelegationOrder, DelegationOutcome } from '#domains/tasks/delegation.service'
import type { Clock } from '#kernel/ports/clock'
import type { EffectCall } from '#kernel/ports/effect-target'
import { CHILD_ACTIONS_MAX } from '#kernel/tasks/delegation'
import { failed, storable } from '../observation.ts'
import { builtinTool, done, jsonObservation } from './builtin-tool.ts'
import type { BuiltinTool } from './builtin-tool.ts'

/** Who takes work on in the background. */
export interface DelegationDesk {
  delegate(order: DelegationOrder): Promise<DelegationOutcome>
  find(ownerId: string, actionId: string): Promise<Delegation | null>
}

const text = (most: number) => z.string().trim().min(1).max(most)

/**
 * `delegate`: hands work on to a task in the background (天工). It changes rows here alone, and cancelling the task takes it back: reversible
 * and local; what the task then does is admitted action by action, with grants that are at most the run's own (K2). What it may cost is its
 * price, taken from what the run has left (K6).
 */
export function delegateTool({ desk, clock }: { desk: DelegationDesk; clock: Clock }): BuiltinTool {
  const name = 'delegate'
  return builtinTool({
    name,
    description:
      'Hands work on to be done in the background, by a helper that knows nothing but what you write here. You get the number of the task, not its result; the owner sees the result when it is there. What it may cost is taken from your own budget.',
    arguments: z.strictObject({
      instruction: text(8_000).describe('What is to be done, complete in itself.'),
      inputs: z.array(text(64_000)).max(4).default([]).describe('Texts that it is to work on.'),
      tools: z.array(text(64)).max(16).default([]).describe('The tools that it needs, of those that you have.'),
      criterion: text(4_000).optional().describe('What has to hold of the result.'),
      max_cost_micros: z.int().min(1).optional().describe('What it may cost at most. Needed where your own cost is bounded.'),
      max_actions: z.int().min(1).max(CHILD_ACTIONS_MAX).optional(),
    }),
    capability: 'reversible_local',
    consequence: 'lasting',
    undoable: true,
    priceArgument: 'max_cost_micros',
    lookUp: async (call) => {
      const known = await desk.find(call.ownerId, call.idempotencyKey)
      // The ledger binds an action to its arguments; no digest of them is kept here beyond their erasure.
      return known ? { type: 'committed', argumentsHash: null, observation: receipt(known, call, clock) } : { type: 'absent' }
    },
    act: async (call) => {
      const { instruction, inputs, tools, criterion, max_cost_micros, max_actions } = call.arguments
      if (call.argumentsContentId === undefined) return failed('arguments_unknown')
      const outcome = await desk.delegate({
        ownerId: call.ownerId,
        runId: call.runId,
        effectId: call.effectId,
        actionId: call.idempotencyKey,
        argumentsContentId: call.argumentsContentId,
        trust: call.trust ?? 'untrusted',
        instruction: storable(instruction),
        inputs: inputs.map(storable),
        tools,
        criterion: criterion === undefined ? null : storable(criterion),
        max_cost_micros: max_cost_micros ?? null,
        max_actions: max_actions ?? null,
      })
      if ('refused' in outcome) return failed(outcome.refused)
      return { ...done(receipt(outcome, call, clock)), costMicros: outcome.max_cost_micros ?? 0 }
    },
  })
}

/** Our own words about what was handed on; nothing in them was read anywhere. */
function receipt({ taskId, tools, max_cost_micros, max_actions }: Delegation, { tool }: Pick<EffectCall, 'tool'>, clock: Clock) {
  return jsonObservation({ tool, value: { task_id: taskId, tools: [...tools], max_cost_micros, max_actions }, clock, trust: 'trusted' })
}
