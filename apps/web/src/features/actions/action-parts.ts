import type { Explanation, NodePart } from '#contracts'
import { readObject } from './observation.ts'

/** What became of an action; null: nothing was said of it (yet). */
export type ActionStatus = 'done' | 'failed' | 'denied' | 'unknown' | null

export type Action = { actionId: string; tool: string; status: ActionStatus; reason: string | null }

/** A message's parts for showing: an action is one thing, although its proposal and its outcome are two parts. */
export type ShownPart =
  | { kind: 'said'; part: NodePart & { kind: Exclude<NodePart['kind'], 'tool_call' | 'tool_result_ref'> } }
  | { kind: 'action'; action: Action }

const statuses: readonly unknown[] = ['done', 'failed', 'denied', 'unknown'] satisfies ActionStatus[]

/** Joins proposals with their outcomes, in the order of the parts; each stands where it was proposed. Pure. */
export function shownParts(parts: readonly NodePart[]): ShownPart[] {
  const shown: ShownPart[] = []
  for (const part of parts) {
    if (part.kind !== 'tool_call' && part.kind !== 'tool_result_ref') {
      shown.push({ kind: 'said', part: { ...part, kind: part.kind } })
      continue
    }
    const action = actionOf(part.text)
    const at = shown.findIndex((one) => one.kind === 'action' && one.action.actionId !== '' && one.action.actionId === action.actionId)
    if (at === -1) shown.push({ kind: 'action', action })
    else if (part.kind === 'tool_result_ref') shown[at] = { kind: 'action', action }
  }
  return shown
}

function actionOf(text: string): Action {
  const read = readObject(text) ?? {}
  return {
    actionId: typeof read.action_id === 'string' ? read.action_id : '',
    tool: typeof read.tool === 'string' ? read.tool : '',
    status: statuses.includes(read.status) ? (read.status as ActionStatus) : null,
    reason: typeof read.reason === 'string' ? read.reason : null,
  }
}

/** What an action was called with, where an explanation shows the message that called it; null where it does not. */
export function calledWith(entities: readonly Pick<Explanation['entities'][number], 'text'>[], actionId: string): string | null {
  for (const { text } of entities) {
    if (text === null || !text.includes(actionId)) continue
    const calls = readObject(text)?.tool_calls
    if (!Array.isArray(calls)) continue
    for (const call of calls as { id?: unknown; function?: { arguments?: unknown } }[]) {
      if (call?.id === actionId && typeof call.function?.arguments === 'string') return call.function.arguments
    }
  }
  return null
}
