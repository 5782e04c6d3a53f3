import type { MemoryView } from '#contracts'
import { plainExcerpt } from '../../parts/plain-excerpt.ts'
import { Badge, When } from '../../parts/small.tsx'
import { Link, paths } from '../../routing/router.tsx'
import { languageOfText } from '../../words/text-language.ts'
import { useFormat, useWords } from '../../words/words.ts'

/** Level, type, origin, confidence and what marks a memory. */
export function MemoryFacts({ memory }: { memory: MemoryView }) {
  const words = useWords().memory
  const format = useFormat()
  return (
    <p className="memory-facts">
      <Badge title={words.levelHint[memory.level]}>{words.level[memory.level]}</Badge>
      <span>{words.type[memory.type]}</span>
      <span>{words.origin[memory.origin]}</span>
      <span>{words.confidence(format.percent(memory.confidence))}</span>
      {memory.state !== 'live' && memory.state !== 'proposed' && <Badge>{words.state[memory.state]}</Badge>}
      {memory.realm.kind !== 'real' && <Badge tone="indigo">{memory.realm.name}</Badge>}
      {(memory.sensitive || memory.topics.length > 0) && (
        <Badge tone="amber">
          {memory.topics.length === 0 ? words.sensitive : memory.topics.map((topic) => words.topic[topic] ?? topic).join(' · ')}
        </Badge>
      )}
      {memory.flagged !== null && <Badge tone="amber">{words.flagged[memory.flagged]}</Badge>}
    </p>
  )
}

/** The messages that a memory rests on, quoted, each with the way there. */
export function MemorySources({ memory, all = false }: { memory: MemoryView; all?: boolean }) {
  const words = useWords().memory
  const shown = all ? memory.sources : memory.sources.slice(0, 1)
  return (
    <ul className="sources">
      {shown.map((source) => (
        <li key={source.node_id}>
          <blockquote lang={languageOfText(source.text ?? '')}>
            {source.text === null ? words.sourceErased : plainExcerpt(source.text)}
          </blockquote>
          <Link to={paths.node(source.tree_id, source.node_id)}>
            {words.source} {source.tree_title !== '' && <span className="faint">{words.inTree(source.tree_title)}</span>}
          </Link>
        </li>
      ))}
      {!all && memory.sources.length > 1 && <li className="faint">{words.sources(memory.sources.length)}</li>}
    </ul>
  )
}

/** When it happened and how often it came back to mind. */
export function MemoryHistory({ memory }: { memory: MemoryView }) {
  const words = useWords().memory
  const format = useFormat()
  return (
    <p className="faint memory-history">
      {words.eventAt(format.relative(memory.event_at))} · {words.hits(memory.hits)}
      {memory.last_hit_at !== null && (
        <>
          {' · '}
          <When at={memory.last_hit_at} />
        </>
      )}
    </p>
  )
}
