import type { CreateCharacter } from '#contracts'
import { Button, IconButton } from '../../parts/button.tsx'
import type { Words } from '../../words/en.ts'
import { useWords } from '../../words/words.ts'

/** The text of a card while it is being written; every field is there, empty where nothing was said. */
export type CardDraft = {
  name: string
  description: string
  personality: string
  scenario: string
  first_message: string
  alternate_greetings: string[]
  system_prompt: string
  post_history_instructions: string
  creator_notes: string
  tags: string
}

export const emptyDraft: CardDraft = {
  name: '',
  description: '',
  personality: '',
  scenario: '',
  first_message: '',
  alternate_greetings: [],
  system_prompt: '',
  post_history_instructions: '',
  creator_notes: '',
  tags: '',
}

type LongField =
  'description' | 'personality' | 'scenario' | 'first_message' | 'system_prompt' | 'post_history_instructions' | 'creator_notes'

/** The long texts of a card with their names and heights in lines. */
export function longFields(words: Words['characters']): { field: LongField; label: string; lines: number }[] {
  return [
    { field: 'description', label: words.description, lines: 5 },
    { field: 'personality', label: words.personality, lines: 3 },
    { field: 'scenario', label: words.scenario, lines: 3 },
    { field: 'first_message', label: words.firstMessage, lines: 4 },
    { field: 'system_prompt', label: words.systemPrompt, lines: 2 },
    { field: 'post_history_instructions', label: words.postHistory, lines: 2 },
    { field: 'creator_notes', label: words.creatorNotes, lines: 2 },
  ]
}

export function fieldsOf(draft: CardDraft): CreateCharacter {
  const { tags, ...texts } = draft
  return {
    ...texts,
    name: draft.name.trim(),
    alternate_greetings: draft.alternate_greetings.filter((greeting) => greeting.trim() !== ''),
    tags: tags
      .split(/[,，、]/)
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
  }
}

export function CardFields({ draft, onChange }: { draft: CardDraft; onChange: (draft: CardDraft) => void }) {
  const words = useWords().characters
  const setGreeting = (index: number, text: string) =>
    onChange({ ...draft, alternate_greetings: draft.alternate_greetings.map((before, at) => (at === index ? text : before)) })
  return (
    <>
      <label className="field">
        <span className="field-label">{words.name}</span>
        <input value={draft.name} required maxLength={400} onChange={(event) => onChange({ ...draft, name: event.target.value })} />
      </label>
      {longFields(words).map(({ field, label, lines }) => (
        <label key={field} className="field">
          <span className="field-label">{label}</span>
          <textarea rows={lines} value={draft[field]} onChange={(event) => onChange({ ...draft, [field]: event.target.value })} />
        </label>
      ))}
      {draft.alternate_greetings.map((greeting, index) => (
        // Greetings have no identity but their place.
        <div key={index} className="field greeting-field">
          <label>
            <span className="field-label">{words.greetingOf(index + 2)}</span>
            <textarea rows={3} value={greeting} onChange={(event) => setGreeting(index, event.target.value)} />
          </label>
          <IconButton
            icon="trash"
            label={words.removeGreeting}
            onClick={() => onChange({ ...draft, alternate_greetings: draft.alternate_greetings.filter((_, at) => at !== index) })}
          />
        </div>
      ))}
      <Button look="quiet" icon="plus" onClick={() => onChange({ ...draft, alternate_greetings: [...draft.alternate_greetings, ''] })}>
        {words.addGreeting}
      </Button>
      <label className="field">
        <span className="field-label">{words.tags}</span>
        <input value={draft.tags} onChange={(event) => onChange({ ...draft, tags: event.target.value })} />
      </label>
    </>
  )
}
