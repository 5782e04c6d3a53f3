import { useMemo } from 'react'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { layOutJson, showUnseen } from './lay-out-json.ts'

/** A text that somebody else wrote, letter by letter: nothing of it is markup, and nothing of it hides. */
export function UntrustedText({ text, label, testId }: { text: string; label: string; testId?: string }) {
  const words = useWords().actions
  const pieces = useMemo(() => showUnseen(text), [text])
  return (
    // Scrolls where it is long, so it must be reachable by keyboard.
    <pre className="untrusted" tabIndex={0} role="region" aria-label={label} dir="ltr" data-testid={testId}>
      {pieces.map((piece, index) =>
        piece.isUnseen ? (
          // Pieces of one text never move: their place is their identity.
          <mark key={index} className="unseen" title={words.unseen}>
            {piece.text}
          </mark>
        ) : (
          piece.text
        ),
      )}
    </pre>
  )
}

/** The arguments of an action, whole, on lines of their own; null = erased. */
export function Arguments({ text }: { text: string | null }) {
  const words = useWords().actions
  const format = useFormat()
  const laidOut = useMemo(() => (text === null ? null : layOutJson(text)), [text])
  if (text === null || laidOut === null) return <p className="message-gone">{words.argumentsErased}</p>
  return (
    <div className="arguments">
      <p className="arguments-head">
        <span>{words.arguments}</span> <span className="faint">{words.argumentsLength(format.number([...text].length))}</span>
      </p>
      <UntrustedText text={laidOut} label={words.arguments} testId={testIds.actionArguments} />
    </div>
  )
}
