import type { RunAction } from '../reducer/actions.ts'
import { knownCommand } from '../reducer/commands.ts'
import type { RunCommand } from '../reducer/commands.ts'
import { reduce } from '../reducer/reduce.ts'
import type { RunLoopState } from '../reducer/state.ts'

/** The outside of a run: each method does one action and hands what came of it back as a command. */
export interface RunEffects {
  /**
   * Writes events under the run's fence. `refused`: nothing was written and the effects have submitted what follows from that (the kill
   * switch); `fenced`: the run is somebody else's.
   */
  record(action: Extract<RunAction, { type: 'record' }>, command: RunCommand): Promise<Performed>
  projectContext(turn: number): void
  requestModel(effectId: string): void
  abortModel(): void
  waitRetry(milliseconds: number): void
  /** Looks up what the verdict on one action reads. */
  assessCall(actionId: string): void
  dispatchEffect(action: Extract<RunAction, { type: 'dispatch_effect' }>): void
  reconcileEffect(action: Extract<RunAction, { type: 'reconcile_effect' }>): void
  abortEffect(): void
  acceptAnswer(): void
  /** Leaves the run where it stands, in one transaction, and its seat to the next. */
  suspend(action: Extract<RunAction, { type: 'suspend' }>, command: RunCommand): Promise<Performed>
  /** Ends the run in one transaction. */
  seal(action: Extract<RunAction, { type: 'seal' }>, command: RunCommand): Promise<Performed>
}

export type Performed = 'done' | 'refused' | 'fenced'

export type DriverOutcome = 'sealed' | 'suspended' | 'fenced'

/** A submission that nobody waits for was refused: going on without it would be another run than the one that happened. */
export class SubmissionRefusedError extends Error {
  constructor(tag: RunCommand['tag']) {
    super(`the driver’s queue is full: ${tag} was refused`)
    this.name = 'SubmissionRefusedError'
  }
}

/**
 * Runs the reducer's actions, decides nothing (K9). Its queue is bounded: `submit` answers false when it is full and the submission is
 * handed back; commands are taken strictly one after another.
 */
export class RunDriver {
  readonly #effects: RunEffects
  readonly #capacity: number
  readonly #queue: RunCommand[] = []
  #state: RunLoopState
  #wake: (() => void) | null = null
  #fenced = false
  #broken: Error | null = null

  constructor({ state, effects, capacity = 256 }: { state: RunLoopState; effects: RunEffects; capacity?: number }) {
    this.#state = state
    this.#effects = effects
    this.#capacity = capacity
  }

  get state(): RunLoopState {
    return this.#state
  }

  submit(command: RunCommand): boolean {
    if (this.#queue.length >= this.#capacity) return false
    this.#queue.push(knownCommand(command))
    this.#wake?.()
    return true
  }

  /** Somebody else owns the run now: stop without writing anything. */
  fence(): void {
    this.#fenced = true
    this.#wake?.()
  }

  /** Something around the run is out of order: it stops before its next command, and `run` rejects with this. */
  breakOff(error: Error): void {
    this.#broken ??= error
    this.#wake?.()
  }

  async run(): Promise<DriverOutcome> {
    for (;;) {
      const command = await this.#next()
      if (this.#broken) throw this.#broken
      if (command === null) return this.#stopFenced()
      const before = this.#state
      const { state, actions } = reduce(before, command)
      this.#state = state
      const performed = await this.#performAll(actions, command)
      if (performed === 'fenced') return this.#stopFenced()
      if (performed === 'refused') {
        // Nothing of this command became durable, so nothing of it happened: no trace in the state (K3).
        this.#state = before
        continue
      }
      if (this.#state.phase === 'ended') return 'sealed'
      if (this.#state.phase === 'suspended') return 'suspended'
    }
  }

  /** One after another; none after one that was not done. */
  async #performAll(actions: readonly RunAction[], command: RunCommand): Promise<Performed> {
    for (const action of actions) {
      const performed = await this.#perform(action, command)
      if (performed !== 'done') return performed
    }
    return 'done'
  }

  #stopFenced(): DriverOutcome {
    this.#effects.abortModel()
    this.#effects.abortEffect()
    return 'fenced'
  }

  async #next(): Promise<RunCommand | null> {
    while (!this.#fenced && !this.#broken) {
      const command = this.#queue.shift()
      if (command) return command
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = null
    }
    return null
  }

  async #perform(action: RunAction, command: RunCommand): Promise<Performed> {
    switch (action.type) {
      case 'record':
        return this.#effects.record(action, command)
      case 'seal':
        return this.#effects.seal(action, command)
      case 'project_context':
        this.#effects.projectContext(action.turn)
        return 'done'
      case 'request_model':
        this.#effects.requestModel(action.effect_id)
        return 'done'
      case 'abort_model':
        this.#effects.abortModel()
        return 'done'
      case 'wait_retry':
        this.#effects.waitRetry(action.milliseconds)
        return 'done'
      case 'assess_call':
        this.#effects.assessCall(action.action_id)
        return 'done'
      case 'dispatch_effect':
        this.#effects.dispatchEffect(action)
        return 'done'
      case 'reconcile_effect':
        this.#effects.reconcileEffect(action)
        return 'done'
      case 'abort_effect':
        this.#effects.abortEffect()
        return 'done'
      case 'suspend':
        return this.#effects.suspend(action, command)
      case 'accept_answer':
        this.#effects.acceptAnswer()
        return 'done'
    }
  }
}
