import { Loading } from '../../parts/small.tsx'
import { useTree } from '../characters/data.ts'
import { useWords } from '../../words/words.ts'
import { MemoryBrowser } from './browser.tsx'
import { InboxView } from './inbox.tsx'

/** The memories of the character one is talking to. */
export function DrawerMemory({ treeId }: { treeId: string }) {
  const words = useWords().memory
  const characterId = useTree(treeId).data?.character_ids[0]
  if (characterId === undefined) return <Loading />
  return (
    <div className="memory-drawer">
      <h2>{words.inbox}</h2>
      <InboxView characterId={characterId} />
      <MemoryBrowser characterId={characterId} />
    </div>
  )
}
