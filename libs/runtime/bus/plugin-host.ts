import { Slug } from '#contracts'
import type { BundlePlugin } from '#contracts'
import type { Scheduler } from '#kernel/ports/clock'
import { Guards } from './guards.ts'
import type { Guard, Listeners } from './guards.ts'
import { guardNodes } from './nodes.ts'
import type { GuardNode } from './nodes.ts'
import type { Listener, Plugin, PluginBus } from './plugin.ts'

/** Milliseconds that one listener may take; beyond them its silence is a no. */
export const LISTENER_LIMIT_MS = 2_000

/** A plugin that cannot be taken in: its name or version is no slug, its name is taken, or it listens where nothing is asked. */
export class PluginRefusedError extends Error {
  readonly plugin: string

  constructor(plugin: string, why: string) {
    super(`plugin ${plugin} was not taken in: ${why}`)
    this.name = 'PluginRefusedError'
    this.plugin = plugin
  }
}

type Collected = { [Node in GuardNode]: Listener<Node>[] }

/** The plugins of this process. Each registers once; which of them listen to a run, and in what order, says the run's bundle (K8). */
export class PluginHost {
  readonly #guards = new Map<string, Guard>()
  readonly #parts: { scheduler: Scheduler; limitMs: number; report(error: unknown, plugin: string): void }

  /** Throws PluginRefusedError, and what a plugin throws while it registers. */
  constructor(parts: { plugins: readonly Plugin[]; scheduler: Scheduler; limitMs?: number; report(error: unknown, plugin: string): void }) {
    const { scheduler, limitMs = LISTENER_LIMIT_MS, report } = parts
    this.#parts = { scheduler, limitMs, report }
    for (const plugin of parts.plugins) {
      const { name, version } = plugin
      if (!Slug.safeParse(name).success || !Slug.safeParse(version).success)
        throw new PluginRefusedError(name, 'name and version are slugs')
      if (this.#guards.has(name)) throw new PluginRefusedError(name, 'the name is taken')
      this.#guards.set(name, { name, version, listeners: registered(plugin) })
    }
  }

  /** What a bundle says of these plugins, in the order in which they were given. */
  get listed(): BundlePlugin[] {
    return [...this.#guards.values()].map(({ name, version }) => ({ name, version }))
  }

  /** Who listens to a run of a bundle that lists these. One that is not here in that version stops whatever it would have guarded. */
  guards(listed: readonly BundlePlugin[]): Guards {
    const guards = listed.map(({ name, version }): Guard => {
      const here = this.#guards.get(name)
      return here?.version === version ? here : { name, version, listeners: 'missing' }
    })
    return new Guards({ ...this.#parts, guards })
  }
}

function registered(plugin: Plugin): Listeners {
  const collected: Collected = { 'llm.pre_request': [], 'tool.pre_execute': [], 'result.pre_accept': [] }
  let isOpen = true
  const bus: PluginBus = {
    on(node, listener) {
      if (!isOpen) throw new PluginRefusedError(plugin.name, 'it listens only from when it registers')
      if (!guardNodes.includes(node)) throw new PluginRefusedError(plugin.name, `there is no node ${node}`)
      collected[node].push(listener)
    },
  }
  plugin.register(bus)
  isOpen = false
  return collected
}
