import { useState } from 'react'
import type { CharacterView } from '#contracts'
import { characterApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { toast } from '../../parts/toasts.tsx'
import { usePersisted } from '../../store/persisted.ts'
import { invalidate, put } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import type { CardDraft } from './card-fields.tsx'
import { CardFields, fieldsOf } from './card-fields.tsx'

function draftOf(character: CharacterView): CardDraft {
  return {
    name: character.name,
    description: character.description,
    personality: character.personality,
    scenario: character.scenario,
    first_message: character.first_message,
    alternate_greetings: character.alternate_greetings,
    system_prompt: character.system_prompt,
    post_history_instructions: character.post_history_instructions,
    creator_notes: character.creator_notes,
    tags: character.tags.join(', '),
  }
}

/** Writes a new version of a card; the versions before stay. */
export function EditCardDialog({ character, onClose }: { character: CharacterView; onClose: () => void }) {
  const words = useWords()
  const [stored, store] = usePersisted('session', `draft.card.${character.persona_version_id}`)
  const draft = stored === null ? draftOf(character) : { ...draftOf(character), ...(JSON.parse(stored) as Partial<CardDraft>) }
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const save = async () => {
    setBusy(true)
    setProblem(null)
    try {
      const saved = await characterApi.addVersion(character.id, fieldsOf(draft))
      store(null)
      put(`character:${character.id}`, saved)
      invalidate('characters', `versions:${character.id}`)
      toast({ text: words.characters.savedVersion(saved.version) })
      onClose()
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  return (
    <Dialog title={words.characters.editCard} onClose={onClose} wide>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <p className="faint">{words.characters.editHint}</p>
        <CardFields draft={draft} onChange={(next) => store(JSON.stringify(next))} />
        {problem !== null && <ProblemNote problem={problem} />}
        <div className="dialog-actions">
          <Button look="quiet" onClick={onClose}>
            {words.common.cancel}
          </Button>
          <Button look="strong" type="submit" busy={busy} disabled={draft.name.trim() === ''}>
            {words.characters.saveVersion}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
