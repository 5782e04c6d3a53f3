import { useEffect, useId, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { testIds } from '../test-ids.ts'
import { useWords } from '../words/words.ts'
import { Button, IconButton } from './button.tsx'
import { ProblemNote } from './problem-note.tsx'

/** A modal window: focus stays inside, Esc closes it, and focus goes back where it was. */
export function Dialog({
  title,
  onClose,
  children,
  wide = false,
}: {
  title: string
  onClose: () => void
  children: ReactNode
  wide?: boolean
}) {
  const words = useWords()
  const titleId = useId()
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    if (dialog === null) return
    const before = document.activeElement
    dialog.showModal()
    // Where one begins: what the dialog asks for, else its first field, else wherever the browser put it.
    dialog.querySelector<HTMLElement>('[data-first], input:not([type=checkbox], [hidden]), textarea')?.focus()
    return () => {
      dialog.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      className={wide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby={titleId}
      data-testid={testIds.dialog}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2 id={titleId}>{title}</h2>
          <IconButton icon="close" label={words.common.close} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** Asks before something that is not taken back easily; says what it means. */
export function ConfirmDialog(props: {
  title: string
  text: string
  confirm: string
  danger?: boolean
  act: () => Promise<void>
  onClose: () => void
}) {
  const words = useWords()
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const run = () => {
    setBusy(true)
    setProblem(null)
    props.act().then(props.onClose, (error: unknown) => {
      setProblem(error)
      setBusy(false)
    })
  }
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <p className="dialog-text">{props.text}</p>
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="dialog-actions">
        <Button look="quiet" onClick={props.onClose} data-first>
          {words.common.cancel}
        </Button>
        <Button look={props.danger === true ? 'danger' : 'strong'} busy={busy} onClick={run} testId={testIds.dialogConfirm}>
          {props.confirm}
        </Button>
      </div>
    </Dialog>
  )
}
