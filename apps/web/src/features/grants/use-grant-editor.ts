import { useState } from 'react'
import type { GrantView, SetGrant } from '#contracts'
import { ApiProblem } from '../../api/client.ts'
import type { GrantPlace } from '../../api/endpoints.ts'
import { actionApi } from '../../api/endpoints.ts'
import { toast } from '../../parts/toasts.tsx'
import type { Resource } from '../../store/resource.ts'
import { put, useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import type { GrantDraft } from './grant-draft.ts'

function keyOf(place: GrantPlace): string {
  return place.scope === 'owner' ? 'grant:owner' : `grant:character:${place.id}`
}

export function useGrant(place: GrantPlace): Resource<GrantView> {
  return useResource(keyOf(place), () => actionApi.grant(place))
}

export type GrantEditor = {
  draft: GrantDraft
  changed: boolean
  change: (part: Partial<GrantDraft>) => void
  save: () => Promise<void>
  busy: boolean
  problem: unknown
  /** What somebody else set while this was being chosen; null where nobody did. */
  conflict: GrantView | null
  takeTheirs: () => void
  keepMine: () => Promise<void>
}

type EditorInput = {
  place: GrantPlace
  /** As it stands on the server. */
  grant: GrantView
  toDraft: (grant: GrantView) => GrantDraft
  toGrant: (draft: GrantDraft, before: GrantView) => SetGrant
}

/** A grant while it is being changed. It is saved over exactly the version that was read; another's change in between is shown first. */
export function useGrantEditor({ place, grant, toDraft, toGrant }: EditorInput): GrantEditor {
  const words = useWords().actions.grant
  // What is being chosen rests on the grant as it was when the choosing began.
  const [edited, setEdited] = useState<{ draft: GrantDraft; before: GrantView } | null>(null)
  const [conflict, setConflict] = useState<GrantView | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const current = edited ?? { draft: toDraft(grant), before: grant }

  const send = async (before: GrantView) => {
    setBusy(true)
    setProblem(null)
    try {
      const saved = await actionApi.setGrant(place, toGrant(current.draft, before))
      put(keyOf(place), saved)
      setEdited(null)
      setConflict(null)
      toast({ text: words.saved })
    } catch (error) {
      if (error instanceof ApiProblem && error.code === 'revision_conflict') await readTheirs()
      else setProblem(error)
    } finally {
      setBusy(false)
    }
  }

  const readTheirs = async () => {
    try {
      setConflict(await actionApi.grant(place))
    } catch (error) {
      setProblem(error)
    }
  }

  return {
    draft: current.draft,
    changed: edited !== null,
    change: (part) => setEdited({ ...current, draft: { ...current.draft, ...part } }),
    save: () => send(current.before),
    busy,
    problem,
    conflict,
    takeTheirs: () => {
      if (conflict !== null) put(keyOf(place), conflict)
      setEdited(null)
      setConflict(null)
    },
    keepMine: () => send(conflict ?? current.before),
  }
}
