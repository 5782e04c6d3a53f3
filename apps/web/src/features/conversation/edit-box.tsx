import { useState } from 'react'
import type { NodeView } from '#contracts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { usePersisted } from '../../store/persisted.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'

/** Edits in place, and says before anything is sent what an edit does here: it forks. */
export function EditBox({ node, onSubmit, onClose }: { node: NodeView; onSubmit: (text: string) => Promise<void>; onClose: () => void }) {
  const words = useWords()
  const [stored, store] = usePersisted('session', `edit.${node.id}`)
  const text = stored ?? node.text
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const isAnswer = node.kind === 'candidate'
  const close = () => {
    store(null)
    onClose()
  }
  const submit = async () => {
    setBusy(true)
    setProblem(null)
    try {
      await onSubmit(text)
      close()
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  const ready = text.trim() !== '' && text !== node.text && !busy
  return (
    <div className="edit-box">
      <p className="edit-note">{isAnswer ? words.talk.forksAnswer : words.talk.forksHere}</p>
      <textarea
        data-testid={testIds.editBox}
        value={text}
        autoFocus
        aria-label={words.common.edit}
        rows={Math.min(14, Math.max(3, text.split('\n').length + 1))}
        onChange={(event) => store(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return
          if (event.key === 'Escape') {
            event.preventDefault()
            close()
          } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && ready) {
            event.preventDefault()
            void submit()
          }
        }}
      />
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="button-row">
        <Button look="quiet" onClick={close}>
          {words.common.cancel}
        </Button>
        <Button look="strong" disabled={!ready} busy={busy} testId={testIds.editSubmit} onClick={() => void submit()}>
          {isAnswer ? words.talk.editKeep : words.talk.editSend}
        </Button>
      </div>
    </div>
  )
}
