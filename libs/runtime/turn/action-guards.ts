import { Verdict } from '#contracts'
import type { AdmissionFacts } from '#contracts'
import type { ListenerVeto } from '#kernel/reducer/commands'
import { RefusedChangeError } from '../bus/guards.ts'
import type { Guards } from '../bus/guards.ts'
import type { NodeValue } from '../bus/nodes.ts'

/** `tool.pre_execute`: what listeners think of an action. A no is the strictest verdict there is, and says by whom (spec/3). */
export async function listenToAction(
  guards: Guards,
  value: NodeValue<'tool.pre_execute'>,
): Promise<{ listeners: AdmissionFacts['listeners']; veto: ListenerVeto | null }> {
  const { taken, veto } = await guards.pass('tool.pre_execute', value, (same, change) => {
    if (!Verdict.safeParse(change).success) throw new RefusedChangeError('not_a_verdict')
    return same
  })
  const verdicts = taken.map(({ change }) => change)
  return { listeners: veto ? [...verdicts, 'forbidden'] : verdicts, veto }
}

/** `result.pre_accept`: whether what came of something may be taken as what it is. Nothing can be changed here (spec/3). */
export async function acceptResult(guards: Guards, value: NodeValue<'result.pre_accept'>): Promise<ListenerVeto | null> {
  const { veto } = await guards.pass('result.pre_accept', value, () => {
    throw new RefusedChangeError('nothing_to_change')
  })
  return veto
}
