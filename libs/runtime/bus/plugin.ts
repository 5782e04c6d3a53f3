import type { Slug } from '#contracts'
import type { GuardNode, NodeChange, NodeValue } from './nodes.ts'

/** What a listener says: nothing, a change of the value, or no; the reason is a slug. */
export type ListenerAnswer<Node extends GuardNode> = { change: NodeChange<Node> } | { veto: Slug } | null | undefined | void

export type Listener<Node extends GuardNode> = (value: NodeValue<Node>) => ListenerAnswer<Node> | Promise<ListenerAnswer<Node>>

/** Where a plugin says on which nodes it listens; open while it registers, and closed after. */
export type PluginBus = { on<Node extends GuardNode>(node: Node, listener: Listener<Node>): void }

/**
 * Something that listens (spec/3 "Plugin contract"). It does no IO and holds no service: it is shown values and answers with values. Code in
 * this process is trusted not to block it; whatever else it does wrong counts as a no.
 */
export type Plugin = { name: Slug; version: Slug; register(bus: PluginBus): void }
