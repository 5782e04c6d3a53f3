import { useState } from 'react'
import type { CreatedOwner } from '#contracts'
import { OwnerRole } from '../../choices.ts'
import { adminApi } from '../../api/endpoints.ts'
import { Button, Select } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge, CopyLine, Loading } from '../../parts/small.tsx'
import { invalidate, useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'

export function OwnersView() {
  const words = useWords().admin
  const owners = useResource('owners', adminApi.owners)
  const [name, setName] = useState('')
  const [role, setRole] = useState<(typeof OwnerRole)[number]>('user')
  const [created, setCreated] = useState<CreatedOwner | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  const add = async () => {
    setProblem(null)
    try {
      setCreated(await adminApi.createOwner(name.trim(), role))
      setName('')
      invalidate('owners')
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <section>
      <p>{words.ownersText}</p>
      {owners.data === undefined ? (
        owners.problem === null ? (
          <Loading />
        ) : (
          <ProblemNote problem={owners.problem} onRetry={owners.reload} />
        )
      ) : (
        <ul className="plain-list">
          {owners.data.items.map((owner) => (
            <li key={owner.id}>
              {owner.name} <Badge>{words.roles[owner.role]}</Badge>
            </li>
          ))}
        </ul>
      )}
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void add()
        }}
      >
        <label className="field">
          <span className="field-label">{words.ownerName}</span>
          <input value={name} maxLength={80} onChange={(event) => setName(event.target.value)} />
        </label>
        <Select
          label={words.ownerRole}
          value={role}
          onChange={setRole}
          options={OwnerRole.map((value) => ({ value, label: words.roles[value] }))}
        />
        {problem !== null && <ProblemNote problem={problem} />}
        <Button type="submit" disabled={name.trim() === ''}>
          {words.addOwner}
        </Button>
      </form>
      {created !== null && created.signin_link !== null && (
        <div className="notice">
          <p>{words.ownerLink}</p>
          <CopyLine text={created.signin_link} />
        </div>
      )}
    </section>
  )
}
