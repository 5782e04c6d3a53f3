import type { CharacterView } from '#contracts'
import { useWords } from '../../words/words.ts'
import { languageOfText } from '../../words/text-language.ts'
import { longFields } from './card-fields.tsx'

/** The whole text of a card as it stands, never rendered as anything but text. */
export function CardText({ character }: { character: CharacterView }) {
  const words = useWords().characters
  const sections = [
    ...longFields(words).map(({ field, label }) => ({ label, text: character[field] })),
    ...character.alternate_greetings.map((text, index) => ({ label: words.greetingOf(index + 2), text })),
  ].filter(({ text }) => text.trim() !== '')
  return (
    <dl className="card-text">
      {sections.map(({ label, text }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd lang={languageOfText(text)}>{text}</dd>
        </div>
      ))}
    </dl>
  )
}
