import { meetTrust } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { ContinuationMessage } from '../prompt/entity.ts'
import { foldAnswer } from './fold-answer.ts'
import type { FoldInsert } from './fold-answer.ts'
import type { Continuation } from './ports.ts'
import { shownName } from './granted-tools.ts'

/**
 * What this run already said goes on as the character's words, what was interjected as the user's; a call stands with the words right before
 * it in one message, and what came of it in the next (spec/2 "Run loop"). Pure.
 */
export function continuationMessages(run: Pick<RunRow, 'candidate_id'>, continuation: Continuation): ContinuationMessage[] {
  const { layout, body, inserts } = foldAnswer(continuation.segments, continuation.inserts)
  // The answer's content will have the candidate's id, so that erasing it erases this copy too (decision 13).
  const own = run.candidate_id === null ? [] : [run.candidate_id]
  const messages: ContinuationMessage[] = []
  let next = 0
  for (const part of layout.parts) {
    if (part.kind === 'reasoning') continue
    if (part.kind === 'text') {
      const text = body.slice(part.from, part.to)
      messages.push({ kind: 'said', text, contentRef: null, derivedFrom: own, trust: continuation.trust })
      continue
    }
    const insert = inserts[next++]
    if (!insert) continue
    if (insert.kind === 'tool_call') {
      const before = messages.at(-1)
      if (before?.kind === 'said') messages.pop()
      messages.push(calledMessage(insert, { own, trust: continuation.trust, said: before?.kind === 'said' ? before.text : null }))
    } else if (insert.kind === 'tool_result_ref') messages.push(observedMessage(insert))
    else if (insert.text !== '') messages.push(steerMessage(insert))
  }
  return messages
}

function steerMessage({ content_id, digest, text }: FoldInsert): ContinuationMessage {
  const contentRef = content_id === null ? null : { content_id, digest }
  return { kind: 'steer', text, contentRef, derivedFrom: [], trust: 'trusted' }
}

function calledMessage(
  insert: FoldInsert,
  { own, trust, said }: { own: string[]; trust: Continuation['trust']; said: string | null },
): ContinuationMessage {
  const { action, content_id: contentId } = insert
  const call = {
    id: action?.action_id ?? '',
    type: 'function',
    function: { name: shownName(action?.tool ?? ''), arguments: action?.body ?? '{}' },
  }
  return {
    kind: 'acted',
    text: JSON.stringify({ role: 'assistant', content: said, tool_calls: [call] }),
    contentRef: null,
    derivedFrom: contentId === null || action?.body === null ? own : [...own, contentId],
    trust: meetTrust([trust, insert.trust]),
  }
}

/** The tool that tells a message's own words; what it tells is what somebody went back for (case K8). */
const RECALL_TOOL = 'recall_original'

/** A refusal is told like a result: what was refused, and why, in one word of ours; and so is what was erased. */
function observedMessage({ action, content_id: contentId, trust }: FoldInsert): ContinuationMessage {
  const told = action?.body ?? JSON.stringify({ status: action?.status ?? 'unknown', reason: action?.reason ?? 'erased' })
  return {
    kind: 'observed',
    text: JSON.stringify({ role: 'tool', tool_call_id: action?.action_id ?? '', content: told }),
    contentRef: null,
    derivedFrom: contentId === null || action?.body === null ? [] : [contentId],
    trust,
    ...(action?.tool === RECALL_TOOL ? { recalled: true as const } : {}),
  }
}
