import type { Trust } from '#contracts'
import type { RunCommand, RunLimits } from '#kernel/reducer/commands'
import type { ChatRequestBody } from '#kernel/ports/model-gateway'
import type { NewContent } from '#kernel/ports/content-store'
import type { RunRow } from '#kernel/ports/run-store'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { Guards } from '../bus/guards.ts'
import type { FoldInsert, FoldSegment } from './fold-answer.ts'

/** What is pinned when a run starts (decision 21). */
export type RunPin = { personaVersionId: string | null; profileVersionId: string; profileHash: string; bundle: string; limits: RunLimits }

/** Content that an event refers to and that is stored in the same transaction; its digest is already in the event. */
export type PendingContent = NewContent & { id: string; salt: Uint8Array }

/** A model request, ready and asserted: what will be sent is what the record rebuilds to. */
export type ReadyRequest = {
  command: Extract<RunCommand, { tag: 'context_projected' }>
  contents: PendingContent[]
  body: ChatRequestBody
  bodyText: string
  /** Contents that the request was made of: what the model asks for next is made of them too (decision 13). */
  shown: readonly string[]
  /** Tokens of the request, for an estimate where the provider gives no usage. */
  promptTokens: number
}
/** A request that a listener does not let out: nothing is sent, and what it would have been is on record. */
export type VetoedRequest = { command: Extract<RunCommand, { tag: 'context_vetoed' }>; contents: PendingContent[] }
export type RefusedRequest = { command: Extract<RunCommand, { tag: 'context_refused' }> }

/** What earlier turns of the same run said and did, and what was interjected (spec/2 "Seat", "Run loop"). */
export type Continuation = {
  segments: readonly FoldSegment[]
  inserts: readonly FoldInsert[]
  /** The meet of the contexts in which it was said (K1). */
  trust: Trust
}

/** What comes of a projection. */
export type ProjectedRequest = ReadyRequest | VetoedRequest | RefusedRequest

/** What a request is built from. `asksUsage`: whether it asks the provider to count (decision 39). `guards`: who listens to this run. */
export type ProjectInput = {
  run: RunRow
  pin: RunPin
  turn: number
  continuation: Continuation
  asksUsage: boolean
  tools: readonly ToolContract[]
  guards: Guards
}

/** `ProjectContext` of the walk: from references to a request, with the assertion made. */
export interface ContextProjector {
  pin(run: RunRow): Promise<RunPin>
  project(input: ProjectInput): Promise<ProjectedRequest>
  countTokens(text: string): number
  /** What a call is charged; 0 where there is no price card, since then nothing is bound by cost. */
  costMicros(tokens: { prompt: number; completion: number }): number
}

/**
 * What the instance's model at its endpoint was found not to take (decision 39). Found by the first requests, kept for all later ones of
 * every process; what a past request looked like stands in its own record.
 */
export interface EndpointQuirks {
  /** Whether requests may carry `stream_options`: true as long as nobody knows better. */
  takesStreamOptions(): Promise<boolean>
  /** What an answer showed. Once it is known that they are refused, that stays so. */
  keep(takesStreamOptions: boolean): Promise<void>
}

/** The tree's side of a run: its sprout and its sealed candidate. Both inside the caller's unit of work. */
export interface SproutKeeper {
  /** Inserts the sprout's row, when its first delta becomes durable; trust: the meet of its context (decision 23, K1). */
  open(run: RunRow, trust: Trust): Promise<void>
  /** Seals the candidate, moves the head on if it still waits there; trust: the meet of all contexts that it was made in. */
  seal(input: { run: RunRow; contentId: string; partial: boolean; trust: Trust | null }): Promise<void>
  /** The run ended without a word: there is no candidate, and the head goes back to where it was (case T2). */
  wither(run: RunRow): Promise<void>
  /** The forbidden gate refused what the run was to send: the attempt goes on the tree's record (M8). */
  noteForbidden(run: RunRow): Promise<void>
}
