/** A bench for plugins: what each is shown and says, with time that passes by hand. For our own suites and for whoever writes a plugin. */
import type { BundlePlugin } from '#contracts'
import type { Scheduler } from '#kernel/ports/clock'
import type { Guards, Passed } from '#runtime/bus/guards'
import type { GuardNode, NodeChange, NodeValue, ShownRun } from '#runtime/bus/nodes'
import type { Listener, Plugin } from '#runtime/bus/plugin'
import { LISTENER_LIMIT_MS, PluginHost } from '#runtime/bus/plugin-host'

type Says = { [Node in GuardNode]?: Listener<Node> }
export type TestPlugin = Plugin & { heard: { node: GuardNode; value: unknown }[] }

/** A plugin by what it says on each node; what it was shown is noted. */
export function testPlugin(name: string, says: Says, version = '1.0.0'): TestPlugin {
  const heard: TestPlugin['heard'] = []
  const on = <Node extends GuardNode>(node: Node, listener: Listener<Node> | undefined, bus: Parameters<Plugin['register']>[0]): void => {
    if (!listener) return
    bus.on(node, (value) => {
      heard.push({ node, value })
      return listener(value)
    })
  }
  return {
    name,
    version,
    heard,
    register(bus) {
      on('llm.pre_request', says['llm.pre_request'], bus)
      on('tool.pre_execute', says['tool.pre_execute'], bus)
      on('result.pre_accept', says['result.pre_accept'], bus)
    },
  }
}

/** Says nothing, ever. */
export const hangs = (): Promise<never> => new Promise(() => undefined)

export function throws(): never {
  throw new Error('the plugin broke')
}

/** Time that passes when it is told to. */
export class HandScheduler implements Scheduler {
  #now = 0
  readonly #waiting = new Set<{ at: number; callback: () => void }>()

  after(milliseconds: number, callback: () => void): () => void {
    const entry = { at: this.#now + milliseconds, callback }
    this.#waiting.add(entry)
    return () => this.#waiting.delete(entry)
  }

  get waiting(): number {
    return this.#waiting.size
  }

  elapse(milliseconds: number): void {
    this.#now += milliseconds
    for (const entry of this.#waiting) {
      if (entry.at > this.#now) continue
      this.#waiting.delete(entry)
      entry.callback()
    }
  }
}

const id = (n: number): string => `01935f00-0000-7000-8000-${String(n).padStart(12, '0')}`
const run: ShownRun = { id: id(1), kind: 'answer', owner_id: id(2), character_id: id(3), tree_id: id(4) }

/** What each node is about, unless a test says otherwise. */
export const sampleValues: { [Node in GuardNode]: NodeValue<Node> } = {
  'llm.pre_request': {
    run,
    turn: 1,
    purpose: 'answer',
    trust: 'workspace',
    messages: [
      { role: 'system', text: 'The rules.', is_text: true, reference: id(10) },
      { role: 'user', text: 'Hello?', is_text: true, reference: id(11) },
    ],
  },
  'tool.pre_execute': { run, action_id: id(5), tool: 'look.up', capability: 'read_only', trust: 'workspace', arguments_text: '{}' },
  'result.pre_accept': { run, kind: 'answer', tool: null, trust: 'workspace', text: 'Hello.' },
}

export type Bench = {
  host: PluginHost
  guards: Guards
  scheduler: HandScheduler
  /** What went wrong inside of plugins. */
  reports: { plugin: string; error: unknown }[]
  ask<Node extends GuardNode>(
    node: Node,
    options?: { value?: NodeValue<Node>; take?: (value: NodeValue<Node>, change: NodeChange<Node>) => NodeValue<Node> },
  ): Promise<Passed<Node>>
  /** Lets everybody's time run out. */
  runOut(): void
}

/** Plugins on a bus of their own; `listed`: as a bundle lists them, where it is otherwise than they were given. */
export function bench(plugins: readonly Plugin[], listed?: readonly BundlePlugin[]): Bench {
  const scheduler = new HandScheduler()
  const reports: Bench['reports'] = []
  const host = new PluginHost({ plugins, scheduler, report: (error, plugin) => void reports.push({ plugin, error }) })
  const guards = host.guards(listed ?? host.listed)
  return {
    host,
    guards,
    scheduler,
    reports,
    ask: (node, { value, take } = {}) => guards.pass(node, value ?? sampleValues[node], take ?? ((same) => same)),
    runOut: () => scheduler.elapse(LISTENER_LIMIT_MS),
  }
}
