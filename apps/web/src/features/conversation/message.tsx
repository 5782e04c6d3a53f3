import { memo, useRef, useState } from 'react'
import type { NodeView, RunView } from '#contracts'
import { runApi } from '../../api/endpoints.ts'
import { Button, IconButton } from '../../parts/button.tsx'
import { PartialMark, Seal, When } from '../../parts/small.tsx'
import { useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useBusy } from './busy.ts'
import { CandidateSwitch } from './candidate-switch.tsx'
import { CitationList } from './citation-list.tsx'
import { EditBox } from './edit-box.tsx'
import { endingText } from './ending-text.ts'
import { MessageActions } from './message-actions.tsx'
import { MessageBody } from './message-body.tsx'
import type { MessageCommands } from './use-commands.ts'

const longPressMilliseconds = 500

type MessageProps = {
  node: NodeView
  speaker: string
  commands: MessageCommands
  canRegenerate: boolean
  editing: boolean
  /** Sealed canonical a moment ago: the seal comes down. */
  fresh: boolean
  /** Where the address points to. */
  pointed: boolean
  /** Among the last messages: its actions are there at once. Further up they come when the message is pointed at or in focus. */
  near: boolean
}

/** One message of the path: who, what, and on hover, focus or long press what can be done with it. */
export const Message = memo(function Message({ node, speaker, commands, canRegenerate, editing, fresh, pointed, near }: MessageProps) {
  const words = useWords()
  const [open, setOpen] = useState(false)
  const [reached, setReached] = useState(false)
  const press = useRef<ReturnType<typeof setTimeout>>(undefined)
  const isAnswer = node.kind === 'candidate'
  const classes = ['message', isAnswer ? 'message-answer' : 'message-question', `message-${node.role}`]
  if (node.canonical) classes.push('message-canonical')
  if (node.partial) classes.push('message-partial')
  if (pointed) classes.push('message-pointed')
  return (
    <article
      className={classes.join(' ')}
      tabIndex={0}
      aria-label={speaker}
      data-testid={testIds.message}
      data-node-id={node.id}
      data-kind={node.kind}
      data-role={node.role}
      data-partial={node.partial}
      data-canonical={node.canonical}
      data-actions-open={open}
      onPointerEnter={() => setReached(true)}
      onFocus={() => setReached(true)}
      onTouchStart={() => {
        press.current = setTimeout(() => setOpen(true), longPressMilliseconds)
      }}
      onTouchMove={() => clearTimeout(press.current)}
      onTouchEnd={() => clearTimeout(press.current)}
    >
      <header className="message-head">
        <span className="speaker">{speaker}</span>
        {node.author === 'owner' && isAnswer && <span className="faint">{words.talk.editedByYou}</span>}
        {node.author === 'import' && <span className="faint">{words.talk.imported}</span>}
        {node.partial && <PartialMark />}
        <span className="message-when faint">
          <When at={node.at} />
        </span>
        <IconButton icon="more" label={words.common.actions} className="message-more" aria-expanded={open} onClick={() => setOpen(!open)} />
      </header>
      <CitationList citations={node.citations} />
      {editing ? (
        <EditBox node={node} onSubmit={(text) => commands.submitEdit(node, text)} onClose={() => commands.edit(null)} />
      ) : (
        <div className="message-text" data-testid={testIds.messageText}>
          <MessageBody node={node} />
        </div>
      )}
      {node.partial && <PartialNote node={node} commands={canRegenerate ? commands : null} />}
      {node.canonical && isAnswer && <Seal fresh={fresh} />}
      {!editing && (
        <footer className="message-foot">
          <CandidateSwitch node={node} onAdopt={commands.adopt} />
          {!node.deleted && (near || reached || open) && <MessageActions node={node} commands={commands} canRegenerate={canRegenerate} />}
        </footer>
      )}
    </article>
  )
})

/** A partial never looks whole: it says that it broke off, why, and offers a new answer. */
function PartialNote({ node, commands }: { node: NodeView; commands: MessageCommands | null }) {
  const words = useWords()
  const disabled = useBusy()
  const run = useResource(node.run_id === null ? null : `run:${node.run_id}`, () => runApi.read(node.run_id ?? ''))
  const reason = run.data === undefined ? null : endingText(words, run.data.state, run.data.reason)
  return (
    <div className="partial-note">
      <span>
        {reason ?? ''} {words.talk.partialText}
      </span>
      {commands !== null && run.data !== undefined && canGoOn(run.data) && (
        <Button look="quiet" disabled={disabled} testId={testIds.goOn} onClick={() => commands.goOn(node.run_id ?? '')}>
          {words.talk.partialGoOn}
        </Button>
      )}
      {commands !== null && (
        <Button look="quiet" disabled={disabled} onClick={() => commands.regenerate(node)}>
          {words.talk.partialAgain}
        </Button>
      )}
    </div>
  )
}

const resumable: ReadonlySet<string> = new Set(['budget_exhausted', 'drained', 'length'])

/** Whether a run left where it stood for another one to go on from. */
function canGoOn({ state, reason }: RunView): boolean {
  return state === 'interrupted' && reason !== null && resumable.has(reason)
}
