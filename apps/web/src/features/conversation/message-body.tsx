import type { NodeView } from '#contracts'
import { useWords } from '../../words/words.ts'
import { testIds } from '../../test-ids.ts'
import { StoredActionLine } from '../actions/action-line.tsx'
import type { ShownPart } from '../actions/action-parts.ts'
import { shownParts } from '../actions/action-parts.ts'
import { MessageMarkdown } from '../markdown/message-markdown.tsx'

/** The parts of a sealed message in order; each text part knows where it begins in the message's text. */
export function MessageBody({ node }: { node: NodeView }) {
  const words = useWords()
  if (node.deleted) return <p className="message-gone">{words.talk.deleted}</p>
  if (node.parts.length === 0)
    return node.text === '' ? (
      <p className="message-gone">{node.sealed && !node.partial ? words.talk.erased : words.talk.empty}</p>
    ) : (
      <MessageMarkdown text={node.text} base={0} />
    )
  let cursor = 0
  return (
    <>
      {shownParts(node.parts).map((shown, index) => {
        // What an unsealed answer's actions brought is told by its living stream alone.
        if (shown.kind === 'action') return <StoredActionLine key={index} action={shown.action} runId={node.sealed ? node.run_id : null} />
        const { part } = shown
        const base = part.kind === 'text' ? Math.max(node.text.indexOf(part.text, cursor), 0) : 0
        if (part.kind === 'text') cursor = base + part.text.length
        // Parts are ordered and never change: their place is their identity.
        return <Part key={index} part={part} base={base} />
      })}
    </>
  )
}

function Part({ part, base }: { part: Extract<ShownPart, { kind: 'said' }>['part']; base: number }) {
  const words = useWords()
  switch (part.kind) {
    case 'text':
      return <MessageMarkdown text={part.text} base={base} />
    case 'reasoning':
      return <Reasoning text={part.text} />
    case 'steer':
      return <SteerLine text={part.text} note={words.talk.interjected} />
    case 'media_ref':
      return <p className="message-gone">{words.talk.media}</p>
  }
}

export function Reasoning({ text, open = false }: { text: string; open?: boolean }) {
  const words = useWords()
  return (
    <details className="folded" open={open}>
      <summary>{words.talk.reasoning}</summary>
      <div className="folded-text">{text}</div>
    </details>
  )
}

/** What the reader said while the answer was being made, where it took effect. */
export function SteerLine({ text, note, waiting = false }: { text: string; note: string; waiting?: boolean }) {
  return (
    <aside className={waiting ? 'steer steer-waiting' : 'steer'} data-testid={testIds.steer} data-waiting={waiting}>
      <span className="steer-note">{note}</span>
      <span className="steer-text">{text}</span>
    </aside>
  )
}
