import { useState } from 'react'
import { characterApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { usePersisted } from '../../store/persisted.ts'
import { invalidate, put } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import type { CardDraft } from './card-fields.tsx'
import { CardFields, emptyDraft, fieldsOf } from './card-fields.tsx'
import { RealmSelect } from './realm-select.tsx'

/** Writes a new character; what is typed survives a reload. */
export function CreateCharacterDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (id: string) => void }) {
  const words = useWords()
  const [stored, store] = usePersisted('session', 'draft.character')
  const draft = stored === null ? emptyDraft : { ...emptyDraft, ...(JSON.parse(stored) as Partial<CardDraft>) }
  const [realmId, setRealmId] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const create = async () => {
    setBusy(true)
    setProblem(null)
    try {
      const character = await characterApi.create({ ...fieldsOf(draft), ...(realmId === null ? {} : { realm_id: realmId }) })
      store(null)
      put(`character:${character.id}`, character)
      invalidate('characters')
      onCreated(character.id)
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  return (
    <Dialog title={words.characters.createTitle} onClose={onClose} wide>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        <p className="faint">{words.characters.createText}</p>
        <CardFields draft={draft} onChange={(next) => store(JSON.stringify(next))} />
        <RealmSelect value={realmId} onChange={setRealmId} />
        {problem !== null && <ProblemNote problem={problem} />}
        <div className="dialog-actions">
          <span className="faint">{words.characters.draftKept}</span>
          <Button look="quiet" onClick={onClose}>
            {words.common.cancel}
          </Button>
          <Button look="strong" type="submit" busy={busy} disabled={draft.name.trim() === ''}>
            {words.characters.createSubmit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
