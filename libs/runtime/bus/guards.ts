import { toSlug } from '#contracts'
import type { Slug } from '#contracts'
import type { Scheduler } from '#kernel/ports/clock'
import type { GuardNode, NodeChange, NodeValue } from './nodes.ts'
import type { Listener, ListenerAnswer } from './plugin.ts'

/** A no, by whom and why. */
export type Veto = { plugin: Slug; reason: Slug }

/** A change that was taken, by whom. */
export type Taken<Node extends GuardNode> = { plugin: Slug; version: Slug; change: NodeChange<Node> }

/** What a node let through: the value after all changes, who changed it, and the no that stopped it, if there was one. */
export type Passed<Node extends GuardNode> = { value: NodeValue<Node>; taken: Taken<Node>[]; veto: Veto | null }

/** A plugin's listeners, or none of them: the bundle names a plugin that is not there. */
export type Guard = { name: Slug; version: Slug; listeners: Listeners | 'missing' }
export type Listeners = { readonly [Node in GuardNode]: readonly Listener<Node>[] }

/** A change that does not go with its value; the reason is a slug. Counts as a no. */
export class RefusedChangeError extends Error {
  readonly reason: Slug

  constructor(reason: Slug) {
    super(`a change was refused: ${reason}`)
    this.name = 'RefusedChangeError'
    this.reason = reason
  }
}

/**
 * The listeners of one bundle, in its order and in each plugin's own (spec/3). All nodes are guards: a listener that throws, that takes too
 * long, that answers what nobody understands, or that is named and not there, says no. The first no stops the node.
 */
export class Guards {
  readonly #guards: readonly Guard[]
  readonly #scheduler: Scheduler
  readonly #limitMs: number
  readonly #report: (error: unknown, plugin: string) => void

  constructor(parts: { guards: readonly Guard[]; scheduler: Scheduler; limitMs: number; report(error: unknown, plugin: string): void }) {
    this.#guards = parts.guards
    this.#scheduler = parts.scheduler
    this.#limitMs = parts.limitMs
    this.#report = parts.report
  }

  /** Whether anybody has a say on a node. */
  listensOn(node: GuardNode): boolean {
    return this.#guards.some(({ listeners }) => listeners === 'missing' || listeners[node].length > 0)
  }

  /** Asks one after another. `take` answers the value with a change in it; it throws RefusedChangeError for one that does not go with it. */
  async pass<Node extends GuardNode>(
    node: Node,
    first: NodeValue<Node>,
    take: (value: NodeValue<Node>, change: NodeChange<Node>) => NodeValue<Node>,
  ): Promise<Passed<Node>> {
    const passed: Passed<Node> = { value: first, taken: [], veto: null }
    for (const { name: plugin, version, listeners } of this.#guards) {
      if (listeners === 'missing') return { ...passed, veto: { plugin, reason: 'plugin_missing' } }
      for (const listener of listeners[node]) {
        const answer = await this.#ask(plugin, listener, passed.value)
        if (answer === null || answer === undefined) continue
        if ('veto' in answer) return { ...passed, veto: { plugin, reason: toSlug(answer.veto) } }
        try {
          passed.value = take(passed.value, answer.change)
          passed.taken.push({ plugin, version, change: answer.change })
        } catch (error) {
          if (!(error instanceof RefusedChangeError)) this.#report(error, plugin)
          return { ...passed, veto: { plugin, reason: error instanceof RefusedChangeError ? error.reason : 'invalid_change' } }
        }
      }
    }
    return passed
  }

  async #ask<Node extends GuardNode>(plugin: Slug, listener: Listener<Node>, value: NodeValue<Node>): Promise<ListenerAnswer<Node>> {
    let cancel = (): void => undefined
    const late = new Promise<{ veto: Slug }>((resolve) => {
      cancel = this.#scheduler.after(this.#limitMs, () => resolve({ veto: 'timed_out' }))
    })
    try {
      const answered = (async () => understood<Node>(await listener(shown(value))))()
      return await Promise.race([answered, late])
    } catch (error) {
      this.#report(error, plugin)
      return { veto: 'threw' }
    } finally {
      cancel()
    }
  }
}

/** A copy that cannot be changed, so that what one listener does to it is nobody else's concern. */
function shown<Value>(value: Value): Value {
  return frozen(structuredClone(value))
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  for (const inner of Object.values(value)) frozen(inner)
  return Object.freeze(value)
}

/** An answer by its form, since a plugin is not bound by our types, and a copy, which it cannot change after. What it changes the node reads. */
function understood<Node extends GuardNode>(answer: ListenerAnswer<Node>): ListenerAnswer<Node> {
  if (answer === null || answer === undefined) return null
  if (typeof answer !== 'object') return { veto: 'unreadable_answer' }
  if ('veto' in answer && typeof answer.veto === 'string') return { veto: answer.veto }
  return 'change' in answer ? { change: frozen(structuredClone(answer.change)) } : { veto: 'unreadable_answer' }
}
