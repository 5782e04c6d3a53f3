import type { BudgetAxis, ContentDigest, EventPayload, EventRecord, EventType, InterruptReason, ModelPurpose } from '#contracts'
import { canonicalJson } from '../record/canonical-json.ts'
import type { RunEvent } from './actions.ts'
import type { ListenerVeto, Rewrite, RunCommand } from './commands.ts'
import { reduce } from './reduce.ts'
import { initialState } from './state.ts'
import type { RunLoopState } from './state.ts'

/** What one command wrote, as the log has it. */
export type RecordedStep = { tag: string; events: readonly EventRecord[] }

export type CommandReplay =
  | { result: 'identical'; commands: number; state: RunLoopState }
  /** The step that the reducer decides otherwise than it was recorded, and the first event that differs. */
  | { result: 'different'; step: number; tag: string; seq: number }

/** Written by whoever makes or queues the run, before it has a loop (decision 16). */
const beforeTheLoop: ReadonlySet<EventType> = new Set<EventType>(['run.requested', 'run.queued'])
/** Commands that cause one event each, so that two of a kind in a row stay two. */
const oneEach: ReadonlySet<string> = new Set(['segments', 'steer'])

/** The log of a run as the steps of its loop. */
export function stepsOf(records: readonly EventRecord[]): RecordedStep[] {
  const steps: { tag: string; cause: string; events: EventRecord[] }[] = []
  for (const record of records) {
    if (beforeTheLoop.has(record.type)) continue
    const cause = canonicalJson(record.cause)
    const last = steps.at(-1)
    if (last && last.cause === cause && !oneEach.has(last.tag)) last.events.push(record)
    else steps.push({ tag: record.cause.tag, cause, events: [record] })
  }
  return steps
}

/**
 * Runs a finished or suspended run's commands through the reducer again and compares every event that they decide, byte for byte, with what
 * was recorded (Reproducible, decision 15). `kindOf`: what a segment was, which deltas do not repeat. Pure.
 */
export function replayCommands(input: {
  candidateId: string | null
  records: readonly EventRecord[]
  kindOf(ordinal: number): 'text' | 'reasoning'
}): CommandReplay {
  let state = initialState(input.candidateId)
  const steps = stepsOf(input.records)
  for (const [index, step] of steps.entries()) {
    const command = commandOf(step, state, input.kindOf)
    const { state: next, actions } = reduce(state, command)
    const decided = actions.flatMap((action) => ('events' in action ? action.events : []))
    const recorded = withoutLateSteers(step.events, state)
    const differs = recorded.findIndex((record, at) => bytesOf(record) !== bytesOf(decided[at]))
    if (differs >= 0 || decided.length !== recorded.length) {
      const at = recorded[Math.max(0, differs)] ?? step.events[0]
      return { result: 'different', step: index, tag: step.tag, seq: at?.seq ?? 0 }
    }
    state = next
  }
  return { result: 'identical', commands: steps.length, state }
}

function bytesOf(event: Pick<RunEvent, 'type' | 'payload' | 'content_digests'> | EventRecord | undefined): string {
  return event === undefined ? '' : canonicalJson([event.type, event.payload, event.content_digests ?? []])
}

/** Interjections that were accepted while the run was ending are added by its sealer, which the loop never heard of (case Q6). */
function withoutLateSteers(events: readonly EventRecord[], state: RunLoopState): EventRecord[] {
  const known = new Set(state.steers.map(({ command_id }) => command_id))
  const ends = events.some(({ type }) => type === 'run.finished' || type === 'run.interrupted' || type === 'run.failed')
  return events.filter((event) => {
    if (!ends || event.type !== 'steer.received') return true
    const { used, command_id: commandId } = event.payload as EventPayload<'steer.received'>
    return used || known.has(commandId) || event.cause.tag === 'steer'
  })
}

class Reader {
  readonly #step: RecordedStep

  constructor(step: RecordedStep) {
    this.#step = step
  }

  #reading(key: string): number | boolean | string | null {
    return this.#step.events[0]?.cause.readings?.[key] ?? null
  }

  number(key: string): number {
    const value = this.#reading(key)
    return typeof value === 'number' ? value : 0
  }

  numberOrNull(key: string): number | null {
    const value = this.#reading(key)
    return typeof value === 'number' ? value : null
  }

  text(key: string): string {
    const value = this.#reading(key)
    return typeof value === 'string' ? value : ''
  }

  textOrNull(key: string): string | null {
    const value = this.#reading(key)
    return typeof value === 'string' ? value : null
  }

  flag(key: string): boolean {
    return this.#reading(key) === true
  }

  events<T extends EventType>(type: T): { payload: EventPayload<T>; digests: readonly ContentDigest[] }[] {
    return this.#step.events
      .filter((record) => record.type === type)
      .map(({ payload, content_digests: digests }) => ({ payload: payload as EventPayload<T>, digests }))
  }

  event<T extends EventType>(type: T): { payload: EventPayload<T>; digests: readonly ContentDigest[] } | null {
    return this.events(type)[0] ?? null
  }
}

/** A command that the log cannot be read back to: its step is not what such a command writes. */
export class UnreadableStepError extends Error {
  constructor(step: RecordedStep, missing: string) {
    super(`the step ${step.tag} at ${step.events[0]?.seq ?? 0} has no ${missing}`)
    this.name = 'UnreadableStepError'
  }
}

/** The command that wrote a step: its tag and readings, and what its events say (decision 15). Throws UnreadableStepError. */
function commandOf(step: RecordedStep, state: RunLoopState, kindOf: (ordinal: number) => 'text' | 'reasoning'): RunCommand {
  const read = new Reader(step)
  const need = <T extends EventType>(type: T) => {
    const found = read.event(type)
    if (!found) throw new UnreadableStepError(step, type)
    return found
  }
  switch (step.tag) {
    case 'start': {
      const { payload } = need('run.started')
      const limit = (key: string): number => read.number(`limits.${key}`)
      return {
        tag: 'start',
        fence: payload.fence,
        persona_version_id: payload.persona_version_id,
        profile_hash: payload.profile_hash,
        bundle: payload.bundle,
        inherited: payload.inherited ?? null,
        limits: {
          max_turns: limit('max_turns'),
          max_wall_ms: limit('max_wall_ms'),
          max_tokens: read.numberOrNull('limits.max_tokens'),
          max_cost_micros: read.numberOrNull('limits.max_cost_micros'),
          max_consecutive_tool_errors: limit('max_consecutive_tool_errors'),
          max_tries: limit('max_tries'),
          max_steers: limit('max_steers'),
        },
      }
    }
    case 'context_projected': {
      const { payload, digests } = need('context.projected')
      return {
        tag: 'context_projected',
        projection: payload,
        content_digests: [...digests],
        effect_id: read.text('effect_id'),
        purpose: read.text('purpose') as ModelPurpose,
        request_digest: read.text('request_digest'),
        model: read.text('model'),
        reserved_tokens: read.number('reserved_tokens'),
        reserved_micros: read.numberOrNull('reserved_micros'),
        embedding_micros: read.number('embedding_micros'),
        policy_version: read.number('policy_version'),
        rewrites: rewritesOf(read),
      }
    }
    case 'context_vetoed': {
      const { payload, digests } = need('context.projected')
      const { plugin, reason } = need('veto').payload
      return {
        tag: 'context_vetoed',
        projection: payload,
        content_digests: [...digests],
        rewrites: rewritesOf(read),
        veto: { plugin, reason },
      }
    }
    case 'context_refused': {
      const { payload } = need('run.failed')
      return { tag: 'context_refused', code: payload.code, rule: payload.rule, policy_version: read.number('policy_version') }
    }
    case 'segments': {
      const { digests } = need('llm.delta')
      return {
        tag: 'segments',
        content_id: digests[0]?.content_id ?? '',
        segments: digests.map(({ digest, segment = 0 }) => ({ kind: kindOf(segment), digest })),
      }
    }
    case 'model_finished': {
      const { payload, digests } = need('llm.completed')
      const { prompt_tokens, completion_tokens, estimated, finish_reason, calls = [] } = payload
      return {
        tag: 'model_finished',
        finish_reason,
        usage: { prompt_tokens, completion_tokens, estimated },
        cost_micros: read.number('cost_micros'),
        calls: calls.map((call, index) => ({ ...call, tool_version: call.tool_version ?? null, digest: digests[index]?.digest ?? '' })),
      }
    }
    case 'model_failed': {
      const { payload } = need('llm.failed')
      return {
        tag: 'model_failed',
        code: payload.code,
        provider_code: payload.provider_code,
        status: payload.status,
        retry_in_ms: read.numberOrNull('retry_in_ms'),
        rebuild: read.flag('rebuild'),
      }
    }
    case 'retry_due':
      return { tag: 'retry_due', effect_id: read.text('effect_id'), model: read.text('model') }
    case 'model_interrupted':
      return {
        tag: 'model_interrupted',
        reason: read.text('reason') as InterruptReason,
        code: read.text('code'),
        provider_code: read.textOrNull('provider_code'),
        settled_tokens: read.number('settled_tokens'),
      }
    case 'steer': {
      const accepted = read.event('command.accepted') ?? need('steer.received')
      const [content] = accepted.digests
      return {
        tag: 'steer',
        command_id: accepted.payload.command_id ?? '',
        content_id: content?.content_id ?? '',
        digest: content?.digest ?? '',
      }
    }
    case 'call_assessed': {
      const { payload } = need('policy.decided')
      if (!payload.facts) throw new UnreadableStepError(step, 'facts')
      return {
        tag: 'call_assessed',
        action_id: read.text('action_id'),
        facts: payload.facts,
        consequence: read.text('consequence') === 'none' ? 'none' : 'lasting',
        price_micros: read.numberOrNull('price_micros'),
        effect_id: read.text('effect_id'),
        approval_id: read.text('approval_id'),
        checkpoint_id: read.text('checkpoint_id'),
        expires_at: read.text('expires_at'),
        ...vetoOf(read),
      }
    }
    case 'effect_settled':
      return {
        tag: 'effect_settled',
        effect_id: read.text('effect_id'),
        outcome: outcomeOf(read.text('outcome')),
        code: read.textOrNull('code'),
        cost_micros: read.number('cost_micros'),
        cost_estimated: read.flag('cost_estimated'),
        observation: observationOf(read),
        checkpoint_id: read.text('checkpoint_id'),
        ...vetoOf(read),
      }
    case 'effect_reconciled': {
      const as = read.text('as')
      return {
        tag: 'effect_reconciled',
        effect_id: read.text('effect_id'),
        as: as === 'done' || as === 'failed' ? as : 'unknown',
        by: read.text('by') === 'person' ? 'person' : 'target',
        observation: observationOf(read),
        checkpoint_id: read.text('checkpoint_id'),
        ...vetoOf(read),
      }
    }
    case 'resume':
      return { tag: 'resume', fence: read.number('fence') }
    case 'drain':
    case 'lease_expired':
      return { tag: step.tag, settled_tokens: read.number('settled_tokens'), checkpoint_id: read.textOrNull('checkpoint_id') }
    case 'cancel':
      return { tag: 'cancel', settled_tokens: read.number('settled_tokens') }
    case 'limit_reached':
      return {
        tag: 'limit_reached',
        which: read.text('which') as BudgetAxis,
        limit: read.number('limit'),
        needed: read.number('needed'),
        settled_tokens: read.number('settled_tokens'),
      }
    case 'queue_expired':
    case 'unknown':
      return { tag: step.tag }
    case 'fail':
      return { tag: 'fail', code: need('run.failed').payload.code }
    case 'accepted': {
      const { payload } = need('result.pre_accept')
      return { tag: 'accepted', content_id: payload.content_id, digest: payload.digest }
    }
    case 'vetoed': {
      const { payload } = need('veto')
      return { tag: 'vetoed', plugin: payload.plugin, reason: payload.reason }
    }
    default:
      throw new UnreadableStepError(step, `known command in phase ${state.phase}`)
  }
}

function rewritesOf(read: Reader): Rewrite[] {
  return read.events('rewrite').map(({ payload, digests }) => ({ ...payload, digest: digests[0]?.digest ?? '' }))
}

/** A listener's no beside what else the step decided; nothing for nobody's. */
function vetoOf(read: Reader): { veto?: ListenerVeto } {
  const vetoed = read.event('veto')
  return vetoed ? { veto: { plugin: vetoed.payload.plugin, reason: vetoed.payload.reason } } : {}
}

function outcomeOf(text: string): Extract<RunCommand, { tag: 'effect_settled' }>['outcome'] {
  return text === 'done' || text === 'failed' || text === 'denied' || text === 'pending' ? text : 'unknown'
}

function observationOf(read: Reader) {
  const seen = read.event('tool.executed')
  const [content] = seen?.digests ?? []
  return seen && content ? { content_id: content.content_id, digest: content.digest, trust: seen.payload.trust } : null
}
