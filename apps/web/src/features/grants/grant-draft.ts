import type { CapabilityClass, GrantView, PermissionMode, SetGrant, ToolView } from '#contracts'
import { CapabilityClass as order } from '../../choices.ts'

/** What a place is to grant, while it is being chosen. */
export type GrantDraft = { mode: PermissionMode; classes: CapabilityClass[]; tools: string[]; exact: string[] }

/** A tool as far as granting it goes. */
export type GrantedTool = Pick<ToolView, 'name' | 'capability' | 'egress'>

/** The class that a tool is judged by: one whose arguments choose where data goes is a send, whatever it calls itself. */
export function judgedClass(tool: GrantedTool): CapabilityClass {
  return tool.egress === 'free' ? 'irreversible_external' : tool.capability
}

/** Whether naming the tool exactly could change anything: the milder classes have other ways to go without a question. */
export function isExactMeaningful(tool: GrantedTool): boolean {
  const judged = judgedClass(tool)
  return judged === 'trust_mutating' || judged === 'irreversible_external'
}

/** What a character's grant says. Where it names nothing exactly it lets through what the owner names, so that is what is shown. */
export function characterDraft(grant: GrantView, ownerExact: readonly string[]): GrantDraft {
  const tools = grant.tools ?? []
  const exact = (grant.exact ?? [...ownerExact]).filter((name) => tools.includes(name))
  return { mode: grant.mode, classes: grant.classes, tools, exact }
}

/**
 * A character's grant from a draft: the chosen tools, and of the classes just those that these need. A chosen tool that is not in the list
 * keeps the classes that were there. Always names what is exact, so that the owner naming a tool frees no character by itself.
 */
export function characterGrant(draft: GrantDraft, before: GrantView, listed: readonly GrantedTool[]): SetGrant {
  const chosen = listed.filter((tool) => draft.tools.includes(tool.name))
  const needed = new Set(chosen.map(judgedClass))
  const isAllListed = draft.tools.every((name) => listed.some((tool) => tool.name === name))
  if (!isAllListed) before.classes.forEach((one) => needed.add(one))
  return {
    mode: draft.mode,
    classes: order.filter((one) => needed.has(one)),
    tools: draft.tools,
    exact: draft.exact.filter((name) => draft.tools.includes(name)),
    class_rules: before.class_rules,
    max_cost_micros: before.max_cost_micros,
    version: before.version,
  }
}

export function ownerDraft(grant: GrantView): GrantDraft {
  return { mode: grant.mode, classes: grant.classes, tools: grant.tools ?? [], exact: grant.exact ?? [] }
}

/** The owner's grant from a draft; what the page does not offer to change stays. */
export function ownerGrant(draft: GrantDraft, before: GrantView): SetGrant {
  return {
    mode: draft.mode,
    classes: order.filter((one) => draft.classes.includes(one)),
    tools: before.tools,
    exact: draft.exact,
    class_rules: before.class_rules,
    max_cost_micros: before.max_cost_micros,
    version: before.version,
  }
}

/** The list with the item in it where it was not, and without it where it was. */
export function toggled<Item>(list: readonly Item[], item: Item): Item[] {
  return list.includes(item) ? list.filter((other) => other !== item) : [...list, item]
}
