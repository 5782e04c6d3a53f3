import { useEffect, useSyncExternalStore } from 'react'
import type { ApprovalView, EffectView } from '#contracts'
import { followRun } from '../../api/follow-run.ts'
import { actionApi } from '../../api/endpoints.ts'
import type { Resource } from '../../store/resource.ts'
import { invalidate, useResource } from '../../store/resource.ts'
import { useInboxCount } from '../memory/data.ts'

/** How often questions are looked for while no stream tells of them. */
const watchMilliseconds = 10_000
const mostShown = 100

export function usePendingApprovals(): Resource<{ items: ApprovalView[] }> {
  return useResource('approvals:pending', () => actionApi.approvals({ state: 'pending', limit: mostShown }))
}

export function useApproval(id: string): Resource<ApprovalView> {
  return useResource(`approval:${id}`, () => actionApi.approval(id))
}

/** What went out and whose outcome nobody knows. */
export function useUnknownEffects(): Resource<{ items: EffectView[] }> {
  return useResource('effects:unknown', actionApi.effects)
}

/** Everything that shows questions and open outcomes reads them again. */
export function actionsChanged(): void {
  invalidate('approvals:', 'approval:', 'effects:')
}

/** How many things wait for the owner in person: questions, open outcomes, memories. */
export function useWaitingCount(): number {
  const approvals = usePendingApprovals().data?.items.length ?? 0
  const effects = useUnknownEffects().data?.items.length ?? 0
  return useInboxCount() + approvals + effects
}

/** Characters act while nobody looks at them: asks now and then while the page is seen. */
export function useActionWatch(): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') invalidate('approvals:', 'effects:')
    }, watchMilliseconds)
    return () => clearInterval(timer)
  }, [])
}

let shownRun: string | null = null
const listeners = new Set<() => void>()

/** The conversation tells which run it shows, so that no hint points at what is in view. */
export function setShownRun(runId: string | null): void {
  if (shownRun === runId) return
  shownRun = runId
  listeners.forEach((listener) => listener())
}

export function useShownRun(): string | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => shownRun,
  )
}

/** What the stream of a run said of its actions: what each brought, and the question about it. */
export type RunActions = ReadonlyMap<string, { observation: string | null; approvalId: string | null }>

/** Reads a run that has ended again from its stream: what was shown can be read back. */
export function useRunActions(runId: string | null): Resource<RunActions> {
  return useResource(runId === null ? null : `actions:of:${runId}`, () => readRunActions(runId ?? ''))
}

async function readRunActions(runId: string): Promise<RunActions> {
  const actions = new Map<string, { observation: string | null; approvalId: string | null }>()
  const known = (id: string) => actions.get(id) ?? { observation: null, approvalId: null }
  await followRun({
    runId,
    signal: AbortSignal.timeout(60_000),
    listener: {
      onEvent(event) {
        if (event.type === 'approval.requested') actions.set(event.action_id, { ...known(event.action_id), approvalId: event.approval_id })
        if (event.type === 'tool.executed') actions.set(event.action_id, { ...known(event.action_id), observation: event.text })
      },
      onConnected: () => undefined,
      onRestart: () => actions.clear(),
    },
  })
  return actions
}
