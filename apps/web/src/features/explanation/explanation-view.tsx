import { useRef, useState } from 'react'
import type { Explanation } from '#contracts'
import { Badge } from '../../parts/small.tsx'
import { IconButton } from '../../parts/button.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { EntityList, useEntityLabel, useReason } from './entity-list.tsx'
import { RecallSection } from './recall-section.tsx'
import { WindowBar } from './window-bar.tsx'

/** The recorded projection of one turn, from the whole window down to the raw messages. */
export function ExplanationView({ explanation, onTurn }: { explanation: Explanation; onTurn: (turn: number) => void }) {
  const words = useWords().why
  const format = useFormat()
  const [lit, setLit] = useState<number | null>(null)
  const list = useRef<HTMLDivElement>(null)
  const { turn, turns } = explanation
  const choose = (index: number) => {
    setLit(index)
    list.current?.querySelector(`[data-index="${index}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <div className="why" data-testid={testIds.explanation} data-run-id={explanation.run_id}>
      <h2>{words.title}</h2>
      <p
        className={`rebuilt rebuilt-${explanation.rebuilt}`}
        data-testid={testIds.rebuilt}
        data-result={explanation.rebuilt}
        title={words.rebuiltTitle}
      >
        {words.rebuilt[explanation.rebuilt]}
      </p>
      <p className="why-facts">
        <span>{explanation.model}</span>
        {explanation.demo && <Badge>{words.demo}</Badge>}
        <Badge tone={explanation.trust === 'untrusted' ? 'amber' : 'plain'} title={words.trustTitle}>
          {words.trust[explanation.trust]}
        </Badge>
        {explanation.usage !== null && (
          <span className="faint">
            {words.usage(format.number(explanation.usage.prompt_tokens), format.number(explanation.usage.completion_tokens))}
            {explanation.usage.estimated && ` (${words.estimated})`}
          </span>
        )}
      </p>
      {turns > 1 && (
        <p className="why-turns">
          <IconButton icon="left" label={words.turn(turn - 1, turns)} disabled={turn <= 1} onClick={() => onTurn(turn - 1)} />
          {words.turn(turn, turns)}
          <IconButton icon="right" label={words.turn(turn + 1, turns)} disabled={turn >= turns} onClick={() => onTurn(turn + 1)} />
        </p>
      )}
      <WindowBar explanation={explanation} lit={lit} onLight={setLit} onChoose={choose} />
      <h3>{words.sent}</h3>
      <div ref={list}>
        <EntityList entities={explanation.entities} lit={lit} onLight={setLit} />
      </div>
      <h3>{words.dropped}</h3>
      <DroppedList dropped={explanation.dropped} />
      <RecallSection runId={explanation.run_id} auditId={explanation.recall_audit_id} />
      <RawMessages explanation={explanation} />
      <p className="faint digest">
        {words.digest}: <code>{explanation.request_digest}</code>
        <br />
        {words.tokenizer(explanation.tokenizer)}
      </p>
    </div>
  )
}

function DroppedList({ dropped }: { dropped: Explanation['dropped'] }) {
  const words = useWords()
  const format = useFormat()
  const reason = useReason()
  const label = useEntityLabel()
  if (dropped.length === 0) return <p className="faint">{words.why.droppedNone}</p>
  return (
    <ul className="dropped" data-testid={testIds.explanationDropped}>
      {dropped.map((entity, index) => (
        // One source may be left out twice; the list never changes.
        <li key={`${index} ${entity.identifier}`}>
          <span className="entity-source">{words.why.source[entity.source as keyof typeof words.why.source] ?? entity.source}</span>
          <span title={entity.identifier}>{label(entity)}</span>
          <span className="faint">
            {reason(entity.reason)} · {words.common.tokens(format.number(entity.tokens))}
          </span>
        </li>
      ))}
    </ul>
  )
}

function RawMessages({ explanation }: { explanation: Explanation }) {
  const words = useWords().why
  return (
    <details className="raw">
      <summary>{words.raw}</summary>
      <ol>
        {explanation.messages.map((message, index) => (
          // Sent order is their identity.
          <li key={index}>
            <span className="raw-role">{words.role[message.role]}</span>
            <pre>{message.text ?? words.erased}</pre>
          </li>
        ))}
      </ol>
    </details>
  )
}
