import type { NewEvent } from '#contracts'
import { toSlug } from '#contracts'
import type { Clock } from '../ports/clock.ts'
import type { EmbeddingOutcome } from '../ports/embedder.ts'
import type { EmbeddingLedger, LeftEmbeddingRequest } from '../ports/embedding-ledger.ts'
import type { EventLog } from '../ports/event-log.ts'
import type { UnitOfWork } from '../ports/unit-of-work.ts'

/** An event of an embedding request's stream, before its envelope. */
export type EmbeddingEvent = { [Type in NewEvent['type']]: Pick<Extract<NewEvent, { type: Type }>, 'type' | 'payload'> }[NewEvent['type']]

/** What recording a request takes. */
export type EmbeddingRecordDeps = { unitOfWork: UnitOfWork; log: EventLog; ledger: EmbeddingLedger; clock: Clock }

/** A request under an id of ours. Micro-units; null without a price card. */
export type EmbeddingEffect = Pick<LeftEmbeddingRequest, 'id' | 'ownerId' | 'characterId' | 'runId' | 'reservedTokens' | 'reservedMicros'>

/** Appends to the request's own stream, inside the caller's unit of work. */
export async function appendEvents(
  { log, clock }: Pick<EmbeddingRecordDeps, 'log' | 'clock'>,
  { id, ownerId, characterId, runId }: Pick<EmbeddingEffect, 'id' | 'ownerId' | 'characterId' | 'runId'>,
  tag: 'embed' | 'owner_lost',
  events: readonly EmbeddingEvent[],
): Promise<void> {
  const at = clock.now().toISOString()
  await log.append({
    stream: `embedding:${id}`,
    ownerId,
    events: events.map((event): NewEvent => ({ ...event, character_id: characterId, run_id: runId, actor: 'kernel', at, cause: { tag } })),
  })
}

/** What became of a request, and what it is charged where it was answered. */
export type EmbeddingTerminal =
  | { type: 'done'; tokens: number; micros: number | null; estimated: boolean; dimensions: number }
  | Exclude<EmbeddingOutcome, { type: 'done' }>

/** Ledger and record in one transaction: the terminal, and what is charged. What nobody knows is charged at its reservation. */
export async function settleRequest(
  deps: EmbeddingRecordDeps,
  effect: EmbeddingEffect,
  terminal: EmbeddingTerminal,
  tag: 'embed' | 'owner_lost' = 'embed',
): Promise<boolean> {
  const { reservedTokens, reservedMicros } = effect
  const nothing = { tokens: 0, micros: reservedMicros === null ? null : 0, estimated: false }
  const everything = { tokens: reservedTokens, micros: reservedMicros, estimated: true }
  const charged = terminal.type === 'done' ? terminal : terminal.type === 'failed' ? nothing : everything
  return deps.unitOfWork.run(async () => {
    const isFirst = await deps.ledger.settle(effect.id, {
      state: terminal.type === 'done' ? 'completed' : terminal.type,
      code: terminal.type === 'done' ? null : toSlug(terminal.code),
      chargedTokens: charged.tokens,
      chargedMicros: charged.micros,
    })
    if (!isFirst) return false
    const settled = { effect_id: effect.id, tokens: charged.tokens, ...costOf(charged.micros), estimated: charged.estimated }
    await appendEvents(deps, effect, tag, [terminalEvent(effect, terminal), { type: 'budget.settled', payload: settled }])
    return true
  })
}

function terminalEvent({ id: effect_id, reservedTokens }: EmbeddingEffect, terminal: EmbeddingTerminal): EmbeddingEvent {
  switch (terminal.type) {
    case 'done': {
      const { tokens, estimated, dimensions } = terminal
      return { type: 'embedding.completed', payload: { effect_id, tokens, estimated, dimensions } }
    }
    case 'failed':
      return {
        type: 'embedding.failed',
        payload: {
          effect_id,
          code: toSlug(terminal.code),
          provider_code: terminal.providerCode === null ? null : toSlug(terminal.providerCode),
          status: terminal.status,
        },
      }
    case 'unknown':
      return { type: 'embedding.unknown', payload: { effect_id, code: toSlug(terminal.code), settled_tokens: reservedTokens } }
  }
}

export function costOf(micros: number | null): { cost_micros?: number } {
  return micros === null ? {} : { cost_micros: micros }
}

/** Left ones that are looked at in one round. */
const LEFT_AT_ONCE = 100

/**
 * Says of requests whose sender is gone that nobody knows what became of them, each once, whichever replicas do this at the same time.
 * `aliveHolder`: the only process that there can be, on the light tier (decision 4). Answers how many.
 */
export async function settleLeftEmbeddings(
  deps: EmbeddingRecordDeps & { report(error: unknown, effectId: string): void },
  { aliveHolder }: { aliveHolder: string | null },
): Promise<number> {
  let settled = 0
  for (const left of await deps.ledger.left({ aliveHolder, limit: LEFT_AT_ONCE })) {
    const isFirst = await settleRequest(deps, left, { type: 'unknown', code: 'owner_lost', retryable: true }, 'owner_lost').catch(
      (error: unknown) => {
        // One that cannot be settled does not keep the others from it.
        deps.report(error, left.id)
        return false
      },
    )
    if (isFirst) settled += 1
  }
  return settled
}
