import type { Ids } from '#kernel/ports/clock'
import type { RunRow } from '#kernel/ports/run-store'
import { saltedDigest } from '#kernel/record/chain'
import type { RunCommand } from '#kernel/reducer/commands'
import type { Guards } from '../bus/guards.ts'
import { acceptResult } from './action-guards.ts'
import { foldAnswer } from './fold-answer.ts'
import { shownRun } from './rewrite-request.ts'
import type { RunSoFar } from './run-so-far.ts'

/**
 * The guards look at the whole answer, its words alone (spec/3). Accepted, it has the digest under `salt` that its seal will show; what they
 * refuse stays a partial.
 */
export async function acceptAnswer(input: {
  run: RunRow
  soFar: RunSoFar
  guards: Guards
  ids: Ids
}): Promise<{ command: RunCommand; salt?: Uint8Array }> {
  const { run, soFar, guards, ids } = input
  const { body, layout } = foldAnswer(soFar.segments, soFar.inserts)
  const text = layout.parts.map(({ kind, from, to }) => (kind === 'text' ? body.slice(from, to) : '')).join('')
  const veto = await acceptResult(guards, { run: shownRun(run), kind: 'answer', tool: null, trust: soFar.trust, text })
  if (veto) return { command: { tag: 'vetoed', ...veto } }
  const salt = ids.bytes(32)
  const digest = Buffer.from(saltedDigest(salt, body)).toString('hex')
  return { command: { tag: 'accepted', content_id: run.candidate_id ?? run.id, digest }, salt }
}
