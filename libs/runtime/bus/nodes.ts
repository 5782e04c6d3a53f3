import type { CapabilityClass, Id, ModelPurpose, RequestPatch, RunKind, Slug, Trust, Verdict } from '#contracts'
import type { RequestRole } from '../projection/layout-1.ts'

/** The run that a listener is asked about. */
export type ShownRun = { id: Id; kind: RunKind; owner_id: Id; character_id: Id | null; tree_id: Id | null }

/** A message as it would be sent. `reference`: the content or node that it comes from; null for one that a listener put in. */
export type ShownMessage = {
  role: RequestRole
  /** A tool call or its result is shown as the JSON text of the whole message; it cannot be changed. */
  text: string
  is_text: boolean
  reference: Id | null
}

/** What a listener is shown on each node, and what it may change there. Values alone: nothing in them can be called. */
export type GuardNodes = {
  /** Before a request is judged, asserted and sent: rewrites, in order. */
  'llm.pre_request': {
    value: { run: ShownRun; turn: number; purpose: ModelPurpose; trust: Trust; messages: readonly ShownMessage[] }
    change: readonly RequestPatch[]
  }
  /** Before the verdict on an action: one more opinion, which can only make it stricter. */
  'tool.pre_execute': {
    value: {
      run: ShownRun
      action_id: Id
      tool: Slug
      capability: CapabilityClass | null
      trust: Trust
      /** As the model gave them, secrets masked; JSON text, where they are JSON. */
      arguments_text: string
    }
    change: Verdict
  }
  /** Before the model sees what an action brought, and before an answer counts as one: nothing to change, it passes or it does not. */
  'result.pre_accept': {
    value: { run: ShownRun; kind: 'observation' | 'answer'; tool: Slug | null; trust: Trust; text: string }
    change: never
  }
}

export type GuardNode = keyof GuardNodes
export type NodeValue<Node extends GuardNode> = GuardNodes[Node]['value']
export type NodeChange<Node extends GuardNode> = GuardNodes[Node]['change']

export const guardNodes: readonly GuardNode[] = Object.freeze(['llm.pre_request', 'tool.pre_execute', 'result.pre_accept'])
