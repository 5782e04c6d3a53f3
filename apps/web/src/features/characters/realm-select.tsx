import { useState } from 'react'
import { characterApi } from '../../api/endpoints.ts'
import { Button, Select } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { invalidate, useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'

const fresh = 'new'

/** Chooses a realm, or makes a new fiction one; nothing chosen yet shows the real one. */
export function RealmSelect({ value, onChange }: { value: string | null; onChange: (realmId: string) => void }) {
  const words = useWords()
  const realms = useResource('realms', characterApi.realms)
  const [naming, setNaming] = useState(false)
  const [name, setName] = useState('')
  const [problem, setProblem] = useState<unknown>(null)
  const all = realms.data?.items ?? []
  const chosenId = value ?? all.find((realm) => realm.kind === 'real')?.id ?? ''
  const add = async () => {
    setProblem(null)
    try {
      const realm = await characterApi.createRealm('fiction', name.trim())
      invalidate('realms')
      onChange(realm.id)
      setNaming(false)
      setName('')
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <div className="field">
      <Select
        label={words.characters.realm}
        value={naming ? fresh : chosenId}
        onChange={(chosen) => {
          setNaming(chosen === fresh)
          if (chosen !== fresh) onChange(chosen)
        }}
        options={[
          ...all.map((realm) => ({ value: realm.id, label: realm.kind === 'real' ? words.characters.realmReal : realm.name })),
          { value: fresh, label: words.characters.newRealm },
        ]}
      />
      {naming && (
        <div className="form-row">
          <input
            value={name}
            aria-label={words.characters.realmName}
            placeholder={words.characters.realmName}
            maxLength={120}
            onChange={(event) => setName(event.target.value)}
          />
          <Button disabled={name.trim() === ''} onClick={() => void add()}>
            {words.common.save}
          </Button>
        </div>
      )}
      <p className="faint">{words.characters.realmHint}</p>
      {problem !== null && <ProblemNote problem={problem} />}
    </div>
  )
}
