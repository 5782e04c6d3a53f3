import { useWords } from '../../words/words.ts'
import { MemoryBrowser } from './browser.tsx'
import { InboxView } from './inbox.tsx'

/** Everything that is remembered, over all characters. */
export function MemoryPage() {
  const words = useWords().memory
  return (
    <div className="page memory-page">
      <h1>{words.title}</h1>
      <p className="page-lead">{words.pageText}</p>
      <section>
        <h2>{words.inbox}</h2>
        <InboxView characterId={null} />
      </section>
      <MemoryBrowser characterId={null} />
    </div>
  )
}
