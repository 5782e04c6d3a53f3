import { useState } from 'react'
import type { KillFlag } from '#contracts'
import { adminApi } from '../../api/endpoints.ts'
import { Button, Select } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading, When } from '../../parts/small.tsx'
import { toast, toastProblem } from '../../parts/toasts.tsx'
import { invalidate, useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useCharacters } from '../characters/data.ts'

const everythingId = '00000000-0000-0000-0000-000000000000'

type Target = { scope: KillFlag['scope']; id: string; name: string }

/** All that can be stopped: everything, an owner, a character of one's own. */
function useTargets(): Target[] {
  const words = useWords().admin
  const owners = useResource('owners', adminApi.owners).data?.items ?? []
  const characters = useCharacters().data?.items ?? []
  return [
    { scope: 'global', id: everythingId, name: words.killGlobalName },
    ...owners.map((owner): Target => ({ scope: 'owner', id: owner.id, name: owner.name })),
    ...characters.map((character): Target => ({ scope: 'character', id: character.id, name: character.name })),
  ]
}

export function KillView() {
  const words = useWords().admin
  const flags = useResource('kill', adminApi.killFlags)
  const targets = useTargets()
  const nameOf = (flag: KillFlag) =>
    targets.find((target) => target.scope === flag.scope && target.id === flag.scope_id)?.name ?? flag.scope_id
  const lift = (flag: KillFlag) => {
    adminApi
      .liftKill(flag.scope, flag.scope_id)
      .then(() => {
        invalidate('kill')
        toast({ text: words.lifted(nameOf(flag)) })
      })
      .catch(toastProblem)
  }
  return (
    <section className="kill">
      <p>{words.killText}</p>
      {flags.data === undefined ? (
        flags.problem === null ? (
          <Loading />
        ) : (
          <ProblemNote problem={flags.problem} onRetry={flags.reload} />
        )
      ) : null}
      {flags.data?.items.length === 0 && <p className="faint">{words.killNone}</p>}
      <ul className="plain-list">
        {flags.data?.items.map((flag) => (
          <li key={`${flag.scope} ${flag.scope_id}`} className="kill-flag">
            <strong>{nameOf(flag)}</strong> <span className="faint">{words.scope[flag.scope]}</span>{' '}
            <span className="faint">
              <When at={flag.set_at} />
            </span>
            <Button onClick={() => lift(flag)}>{words.killLift}</Button>
          </li>
        ))}
      </ul>
      <KillForm targets={targets} />
    </section>
  )
}

function KillForm({ targets }: { targets: Target[] }) {
  const words = useWords().admin
  const [key, setKey] = useState('global')
  const [typed, setTyped] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const keyOf = (target: Target) => (target.scope === 'global' ? 'global' : `${target.scope}/${target.id}`)
  const target = targets.find((candidate) => keyOf(candidate) === key)
  const ready = target !== undefined && typed.trim() === target.name
  const set = async () => {
    if (!ready) return
    setBusy(true)
    setProblem(null)
    try {
      await adminApi.setKill(target.scope, target.id)
      setTyped('')
      invalidate('kill')
      toast({ text: words.killed(target.name) })
    } catch (error) {
      setProblem(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className="form kill-form"
      onSubmit={(event) => {
        event.preventDefault()
        void set()
      }}
    >
      <Select
        label={words.killTarget}
        value={key}
        onChange={(value) => {
          setKey(value)
          setTyped('')
        }}
        options={targets.map((candidate) => ({
          value: keyOf(candidate),
          label: candidate.scope === 'global' ? candidate.name : `${words.scope[candidate.scope]}: ${candidate.name}`,
        }))}
      />
      {target !== undefined && (
        <label className="field">
          <span className="field-label">{words.killConfirm(target.name)}</span>
          <input value={typed} autoComplete="off" data-testid={testIds.killConfirm} onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
      {problem !== null && <ProblemNote problem={problem} />}
      <Button look="danger" type="submit" busy={busy} disabled={!ready} testId={testIds.killSubmit}>
        {words.killSet}
      </Button>
    </form>
  )
}
