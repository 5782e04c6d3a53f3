import { useState } from 'react'
import type { CharacterView } from '#contracts'
import { sessionApi } from '../../api/endpoints.ts'
import { Button, Select } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import { startConversation } from './data.ts'
import { RealmSelect } from './realm-select.tsx'

/** Begins a conversation at once, or with a title, a realm and a persona of one's own. */
export function NewConversationForm({ character }: { character: CharacterView }) {
  const words = useWords()
  const personas = useResource('personas', sessionApi.personas)
  const [title, setTitle] = useState('')
  const [personaVersionId, setPersona] = useState('')
  const [realmId, setRealm] = useState(character.realm.id)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const start = () => {
    setBusy(true)
    setProblem(null)
    startConversation({
      characterId: character.id,
      title,
      ...(personaVersionId === '' ? {} : { personaVersionId }),
      realmId,
    }).catch((error: unknown) => {
      setProblem(error)
      setBusy(false)
    })
  }
  return (
    <section className="new-conversation">
      <Button look="strong" icon="talk" busy={busy} onClick={start}>
        {words.characters.newConversationWith(character.name)}
      </Button>
      <details className="options">
        <summary>{words.characters.options}</summary>
        <div className="form">
          <label className="field">
            <span className="field-label">
              {words.characters.titleOfTree} <span className="faint">{words.characters.titleHint}</span>
            </span>
            <input value={title} maxLength={400} onChange={(event) => setTitle(event.target.value)} />
          </label>
          <Select
            label={words.characters.persona}
            value={personaVersionId}
            onChange={setPersona}
            options={[
              { value: '', label: words.characters.personaNone },
              ...(personas.data?.items ?? []).map((persona) => ({ value: persona.version_id, label: persona.name })),
            ]}
          />
          <RealmSelect value={realmId} onChange={setRealm} />
        </div>
      </details>
      {problem !== null && <ProblemNote problem={problem} />}
    </section>
  )
}
