import { z } from 'zod'
import { RecordedEntity } from '../events.ts'
import { InterruptReason, MessageRole, RunKind, RunState, SuspendReason, Trust } from '../enums.ts'
import { Id, Slug } from '../ids.ts'
import { MessageText, PageQuery, pageOf } from './common.ts'

export const RunView = z
  .object({
    id: Id,
    kind: RunKind,
    state: RunState,
    reason: z.string().nullable(),
    /** Its cancelling was accepted, and waits for what is out (case E12). */
    cancelling: z.boolean(),
    character_id: Id,
    tree_id: Id.nullable(),
    question_id: Id.nullable(),
    candidate_id: Id.nullable(),
    /** 0 = has the seat or needs none; n = n-th in line. */
    queue_position: z.int().min(0),
    /** Where the seat is held, when this run waits for it. */
    seat_held_by: z.object({ run_id: Id, tree_id: Id.nullable(), tree_title: z.string().nullable() }).nullable(),
    requested_at: z.string(),
    started_at: z.string().nullable(),
    ended_at: z.string().nullable(),
    last_seq: z.int(),
  })
  .meta({ id: 'Run' })
export type RunView = z.infer<typeof RunView>
export const RunPage = pageOf(RunView, 'RunPage')
export const RunListQuery = PageQuery.extend({ state: RunState.optional(), character_id: Id.optional(), tree_id: Id.optional() })

export const Steer = z.object({ text: MessageText }).meta({ id: 'Steer' })
export type Steer = z.infer<typeof Steer>
export const CommandAccepted = z.object({ command_id: Id, run: RunView }).meta({ id: 'CommandAccepted' })
export type CommandAccepted = z.infer<typeof CommandAccepted>

/**
 * One SSE message of a run: `id:` is `seq`, `event:` is `type`, `data:` this object. Text of a delta or steer is resolved from content;
 * null once erased. `prev_seq` is the previous public seq, 0 for the first (decision 29).
 */
const base = { run_id: Id, seq: z.int(), prev_seq: z.int(), at: z.string() }
const segment = z.object({ kind: z.enum(['text', 'reasoning']), part: z.int(), text: z.string().nullable() })
const end = { candidate_id: Id.nullable(), delta_count: z.int(), partial: z.boolean() }
export const RunStreamEvent = z
  .discriminatedUnion('type', [
    z.object({
      ...base,
      type: z.literal('run.requested'),
      tree_id: Id.nullable(),
      question_id: Id.nullable(),
      candidate_id: Id.nullable(),
    }),
    z.object({ ...base, type: z.literal('run.queued'), position: z.int() }),
    /** `inherited`: the words of the answer that this one goes on with; absent where it goes on with none. */
    z.object({ ...base, type: z.literal('run.started'), inherited: z.array(segment).optional() }),
    z.object({ ...base, type: z.literal('turn.started'), turn: z.int() }),
    z.object({
      ...base,
      type: z.literal('llm.delta'),
      segments: z.array(segment),
    }),
    z.object({ ...base, type: z.literal('steer.received'), command_id: Id, text: z.string().nullable(), used: z.boolean() }),
    z.object({ ...base, type: z.literal('turn.finished'), turn: z.int() }),
    /** What came of one action; `text`: the observation as JSON, null where there is none or it is erased. */
    z.object({
      ...base,
      type: z.literal('tool.executed'),
      action_id: Id,
      tool: z.string(),
      status: z.enum(['done', 'failed', 'denied', 'unknown']),
      reason: z.string().nullable(),
      text: z.string().nullable(),
    }),
    z.object({ ...base, type: z.literal('approval.requested'), approval_id: Id, action_id: Id, tool: z.string(), expires_at: z.string() }),
    /** Not an end: the stream goes on when the run does. */
    z.object({ ...base, type: z.literal('run.suspended'), reason: SuspendReason }),
    z.object({ ...base, type: z.literal('run.resumed') }),
    z.object({ ...base, type: z.literal('run.finished'), ...end }),
    z.object({ ...base, type: z.literal('run.interrupted'), reason: InterruptReason, code: z.string().nullable(), ...end }),
    z.object({ ...base, type: z.literal('run.failed'), code: z.string(), ...end }),
  ])
  .meta({ id: 'RunStreamEvent' })
export type RunStreamEvent = z.infer<typeof RunStreamEvent>

/** "Why did it say that": the recorded projection of one turn, in sent order, with texts where the reader may see them. */
export const Explanation = z
  .object({
    run_id: Id,
    turn: z.int(),
    turns: z.int(),
    model: z.string(),
    demo: z.boolean(),
    tokens: z.object({ window: z.int(), reserve: z.int(), tools: z.int(), used: z.int(), history: z.int() }),
    tokenizer: z.string(),
    trust: Trust,
    entities: z.array(RecordedEntity.extend({ text: z.string().nullable(), label: z.string(), nodes: z.int().optional() })),
    dropped: z.array(
      z.object({
        identifier: z.string(),
        source: z.string(),
        source_id: Id.nullable(),
        tokens: z.int(),
        reason: z.string(),
        label: z.string(),
        nodes: z.int().optional(),
      }),
    ),
    messages: z.array(z.object({ role: MessageRole, text: z.string().nullable() })),
    /** Who changed the messages before they were sent, in order; absent for nobody. */
    rewrites: z.array(z.object({ plugin: Slug, plugin_version: Slug, reference: Id.nullable() })).optional(),
    usage: z.object({ prompt_tokens: z.int(), completion_tokens: z.int(), estimated: z.boolean() }).nullable(),
    /** The whole request re-derived from the log just now. */
    rebuilt: z.enum(['identical', 'different', 'erased']),
    request_digest: z.string(),
    recall_audit_id: Id.nullable(),
  })
  .meta({ id: 'Explanation' })
export type Explanation = z.infer<typeof Explanation>
export const ExplanationQuery = z.object({ turn: z.coerce.number().int().min(1).optional() })

/** Admin: what was sent, byte for byte. */
export const ProjectedContext = z
  .object({
    run_id: Id,
    turn: z.int(),
    body: z.string().nullable(),
    request_digest: z.string(),
    rebuilt_digest: z.string().nullable(),
    result: z.enum(['identical', 'different', 'erased']),
  })
  .meta({ id: 'ProjectedContext' })
export type ProjectedContext = z.infer<typeof ProjectedContext>
