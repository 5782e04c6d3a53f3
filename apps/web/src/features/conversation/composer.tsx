import { useEffect, useRef } from 'react'
import { Button, IconButton } from '../../parts/button.tsx'
import { plainExcerpt } from '../../parts/plain-excerpt.ts'
import { testIds } from '../../test-ids.ts'
import { useMedia } from '../../words/preferences.ts'
import { useWords } from '../../words/words.ts'
import type { Draft } from './drafts.ts'
import { useDraft } from './drafts.ts'

/** `waiting`: the answer waits for its owner's word; one can interject as while it speaks. */
export type ComposerMode = 'ask' | 'steer' | 'waiting' | 'queued' | 'sending'

type ComposerProps = {
  treeId: string
  name: string
  mode: ComposerMode
  stopping: boolean
  /** Sends the draft; resolves true when it was taken, and then the draft is cleared. */
  onSend: (draft: Draft) => Promise<boolean>
  onStop: () => void
}

/** Where one writes: a question, or an interjection while the answer is being made. */
export function Composer({ treeId, name, mode, stopping, onSend, onStop }: ComposerProps) {
  const { talk: words, actions } = useWords()
  const [draft, setDraft] = useDraft(treeId)
  const area = useRef<HTMLTextAreaElement>(null)
  const touch = useMedia('(hover: none) and (pointer: coarse)')
  const steers = mode === 'steer' || mode === 'waiting'
  const canSend = draft.text.trim() !== '' && (mode === 'ask' || steers)

  const placeholder = {
    ask: words.placeholder(name),
    sending: words.placeholder(name),
    steer: words.steerPlaceholder(name),
    waiting: actions.waitingPlaceholder(name),
    queued: words.queuedPlaceholder,
  }[mode]

  useEffect(() => {
    const element = area.current
    if (element === null) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`
  }, [draft.text])

  useEffect(() => {
    if (!touch) area.current?.focus({ preventScroll: true })
  }, [touch, treeId])

  const send = async () => {
    if (!canSend) return
    const sent = draft
    // Cleared at once, so that it reads as sent; put back where it was refused.
    setDraft(steers ? { ...draft, text: '' } : { text: '', citations: [] })
    if (!(await onSend(sent))) setDraft(sent)
  }

  return (
    <form
      className="composer"
      data-mode={mode}
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      {draft.citations.length > 0 && (
        <ul className="chips" aria-label={words.citations}>
          {draft.citations.map((citation) => (
            <li key={`${citation.node_id} ${citation.from} ${citation.to}`} className="chip" data-testid={testIds.citationChip}>
              <span className="chip-text">{plainExcerpt(citation.text)}</span>
              {citation.whole && <span className="faint">{words.whole}</span>}
              <IconButton
                icon="close"
                label={words.removeCitation}
                onClick={() => setDraft({ ...draft, citations: draft.citations.filter((other) => other !== citation) })}
              />
            </li>
          ))}
        </ul>
      )}
      <div className="composer-row">
        <textarea
          ref={area}
          data-composer
          data-testid={testIds.composer}
          aria-label={words.composerLabel}
          rows={1}
          value={draft.text}
          placeholder={placeholder}
          onChange={(event) => setDraft({ ...draft, text: event.target.value })}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || touch || event.nativeEvent.isComposing) return
            event.preventDefault()
            void send()
          }}
        />
        {steers && (
          <Button icon="stop" busy={stopping} testId={testIds.stop} onClick={onStop} title="Esc">
            {stopping ? words.stopping : words.stop}
          </Button>
        )}
        <Button
          type="submit"
          look="strong"
          icon="up"
          busy={mode === 'sending'}
          disabled={!canSend}
          testId={testIds.send}
          className="composer-send"
        >
          {steers ? words.interject : words.send}
        </Button>
      </div>
    </form>
  )
}
