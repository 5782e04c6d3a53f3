import type { Explanation } from '#contracts'
import { Badge } from '../../parts/small.tsx'
import { testIds } from '../../test-ids.ts'
import { languageOfText } from '../../words/text-language.ts'
import { useFormat, useWords } from '../../words/words.ts'

const foldedLength = 220

/** A reason in words where the page knows it; else as it was recorded. */
export function useReason(): (reason: string) => string {
  const { reasons } = useWords().why
  return (reason) => reasons[reason] ?? reason
}

/** What an entity is, in the reader's language where the page knows it. */
export function useEntityLabel(): (entity: { identifier: string; label: string }) => string {
  const { label } = useWords().why
  return (entity) =>
    label[entity.identifier] ?? label[entity.identifier.split('.')[0] ?? ''] ?? (entity.label === '' ? entity.identifier : entity.label)
}

type EntityListProps = { entities: Explanation['entities']; lit: number | null; onLight: (index: number | null) => void }

/** Every prompt entity in the order it was sent: source, reason, trust, place, tokens, text. */
export function EntityList({ entities, lit, onLight }: EntityListProps) {
  const words = useWords()
  const format = useFormat()
  const reason = useReason()
  const label = useEntityLabel()
  return (
    <ol className="entities">
      {entities.map((entity, index) => (
        // Sent order is their identity.
        <li
          key={index}
          className={index === lit ? 'entity entity-lit' : 'entity'}
          data-testid={testIds.explanationEntity}
          data-source={entity.source}
          data-index={index}
          onMouseEnter={() => onLight(index)}
          onMouseLeave={() => onLight(null)}
        >
          <p className="entity-head">
            <span className={`swatch source-${entity.source}`} aria-hidden="true" />
            <span className="entity-source">{words.why.source[entity.source]}</span>
            <span className="entity-label" title={entity.identifier}>
              {label(entity)}
            </span>
            <span className="entity-tokens">{format.number(entity.tokens)}</span>
          </p>
          <p className="entity-facts faint">
            <span>{words.why.role[entity.role]}</span>
            <span>
              {entity.position.at === 'relative'
                ? words.why.rank(entity.position.rank)
                : words.why.depth(entity.position.depth, entity.position.order)}
            </span>
            <span>
              {words.why.reason} {reason(entity.reason)}
            </span>
            {entity.nodes !== undefined && <span>{words.why.messagesInside(entity.nodes)}</span>}
            <Badge tone={entity.trust === 'untrusted' ? 'amber' : 'plain'}>{words.why.trust[entity.trust]}</Badge>
            {entity.forbid_override && <span>{words.why.protected}</span>}
            {entity.overridden_by !== null && <span>{words.why.overridden(entity.overridden_by)}</span>}
          </p>
          <EntityText text={entity.text} isPath={entity.nodes !== undefined} />
        </li>
      ))}
    </ol>
  )
}

function EntityText({ text, isPath }: { text: string | null; isPath: boolean }) {
  const words = useWords()
  if (text === null) return isPath ? null : <p className="faint">{words.why.erased}</p>
  if (text === '') return null
  if (text.length <= foldedLength) {
    return (
      <p className="entity-text" lang={languageOfText(text)}>
        {text}
      </p>
    )
  }
  return (
    <details className="entity-more">
      <summary lang={languageOfText(text)}>{text.slice(0, foldedLength)}…</summary>
      <p className="entity-text" lang={languageOfText(text)}>
        {text}
      </p>
    </details>
  )
}
