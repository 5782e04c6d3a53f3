import type { Id, RequestPatch } from '#contracts'
import type { RequestMessage } from './layout-1.ts'

/**
 * A message while it is being rewritten. `reference`: the content or node that it comes from. `fixed`: our own contract, which only a release changes; `kept`: what the model is asked, which may
 * be worded otherwise and not be taken away. A rebuild knows neither: what was recorded is applied as it is.
 */
export type PatchableMessage = RequestMessage & { reference?: Id | null; fixed?: true; kept?: true }

/** Why a patch does not go with the messages that it is for. */
export type PatchFault = 'no_such_message' | 'not_a_text' | 'splits_an_action' | 'fixed_message' | 'kept_message' | 'asks_nothing'

/** A patch cannot be applied to these messages. */
export class UnfitPatchError extends Error {
  readonly fault: PatchFault

  constructor(fault: PatchFault) {
    super(`the patch does not fit: ${fault}`)
    this.name = 'UnfitPatchError'
    this.fault = fault
  }
}

type Op = RequestPatch['ops'][number]

function applyOp(messages: PatchableMessage[], op: Op): void {
  const here = messages[op.at]
  if (op.op === 'insert') {
    if (op.at > messages.length) throw new UnfitPatchError('no_such_message')
    // What an action brought follows its call at once, or the provider takes neither.
    if (here?.role === 'tool') throw new UnfitPatchError('splits_an_action')
    messages.splice(op.at, 0, { role: op.role, content: op.text })
    return
  }
  if (!here) throw new UnfitPatchError('no_such_message')
  if (here.json) throw new UnfitPatchError('not_a_text')
  if (here.fixed) throw new UnfitPatchError('fixed_message')
  if (op.op === 'replace') {
    if (here.kept && op.role !== here.role) throw new UnfitPatchError('kept_message')
    messages[op.at] = { ...here, role: op.role, content: op.text }
    return
  }
  if (here.kept) throw new UnfitPatchError('kept_message')
  messages.splice(op.at, 1)
}

/** The messages with one patch applied. Pure; the same input gives the same output, for the request and its rebuild. Throws UnfitPatchError. */
export function applyPatch(messages: readonly PatchableMessage[], patch: RequestPatch): PatchableMessage[] {
  const rewritten = [...messages]
  for (const op of patch.ops) applyOp(rewritten, op)
  if (!rewritten.some(({ role }) => role === 'user')) throw new UnfitPatchError('asks_nothing')
  return rewritten
}
