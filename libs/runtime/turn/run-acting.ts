import { ADMISSION_POLICY_VERSION } from '#kernel/admission/admit'
import type { NewApproval } from '#kernel/ports/approval-store'
import type { RunAction, RunEvent } from '#kernel/reducer/actions'
import type { RunCommand } from '#kernel/reducer/commands'
import type { RunLoopState, ToolCall } from '#kernel/reducer/state'
import type { PendingContent } from './ports.ts'
import type { RunActions } from './run-actions.ts'
import type { RunSoFar } from './run-so-far.ts'

/** What the acting side of a run shares with the rest of it. */
export type RunActingDeps = {
  runId: string
  actions: RunActions
  soFar: RunSoFar
  state(): RunLoopState
  submit(command: RunCommand): void
  /** Stores contents with the next events, which refer to them. */
  hold(contents: readonly PendingContent[]): void
}

/** The acting side of a run: what the loop asks for goes to its actions, and what comes of it back to the loop (spec/2 "Run loop"). */
export class RunActing {
  readonly #deps: RunActingDeps

  constructor(deps: RunActingDeps) {
    this.#deps = deps
  }

  async assess(actionId: string): Promise<void> {
    const { actions, soFar, submit } = this.#deps
    submit(await actions.assess(this.#call(actionId), soFar.trust))
  }

  dispatch({ effect_id: effectId, action_id, constraints }: Extract<RunAction, { type: 'dispatch_effect' }>): Promise<void> {
    const { actions, soFar, state } = this.#deps
    const ending = state().ending !== null
    return this.#take(actions.takeUp({ call: this.#call(action_id), effectId, constraints, contextTrust: soFar.trust, ending }))
  }

  reconcile({ effect_id: effectId, action_id }: Extract<RunAction, { type: 'reconcile_effect' }>): Promise<void> {
    return this.#take(this.#deps.actions.reconcile(this.#call(action_id), effectId))
  }

  abort(): void {
    this.#deps.actions.abort()
  }

  /** What the owner is asked with this suspension; null where it asks nothing. */
  async question(action: Extract<RunAction, { type: 'suspend' }>, command: RunCommand): Promise<NewApproval | null> {
    const { approval } = action
    const asked = action.state.calls.find(({ action_id: id }) => id === approval?.action_id)
    if (!approval || !asked || command.tag !== 'call_assessed') return null
    return this.#deps.actions.facts.question(asked, {
      approvalId: approval.approval_id,
      reason: reasonOf(action.events),
      policyVersion: ADMISSION_POLICY_VERSION,
      expiresAt: new Date(command.expires_at),
    })
  }

  #call(actionId: string): ToolCall {
    const { runId, state } = this.#deps
    const call = state().calls.find(({ action_id: id }) => id === actionId)
    if (!call) throw new Error(`run ${runId} proposed no action ${actionId}`)
    return call
  }

  async #take(acted: Promise<{ command: RunCommand; contents: PendingContent[] }>): Promise<void> {
    const { command, contents } = await acted
    this.#deps.hold(contents)
    this.#deps.soFar.keepTexts(contents)
    this.#deps.submit(command)
  }
}

/** Why the owner is asked, as the verdict says. */
function reasonOf(events: readonly RunEvent[]): string {
  for (const event of events) if (event.type === 'policy.decided') return event.payload.reason ?? 'class_asks'
  return 'class_asks'
}
