import type { CitationView } from '#contracts'
import { plainExcerpt } from '../../parts/plain-excerpt.ts'
import { Link, paths } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'

/** The passages that a question cites, each with the way to where it was said. */
export function CitationList({ citations }: { citations: readonly CitationView[] }) {
  const words = useWords()
  if (citations.length === 0) return null
  return (
    <ul className="citations" aria-label={words.talk.citations}>
      {citations.map((citation) => (
        <li key={citation.id} data-testid={testIds.citedPassage}>
          <blockquote>{citation.text === null ? words.talk.erased : plainExcerpt(citation.text)}</blockquote>
          <Link to={paths.node(citation.source_tree_id, citation.source_node_id)}>{words.talk.goToSource}</Link>
        </li>
      ))}
    </ul>
  )
}
