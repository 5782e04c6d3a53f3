import { Button } from '../../parts/button.tsx'
import { Link, paths } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import type { LiveRun } from './use-live-run.ts'

/** Who holds the seat, how far one is from it, and the way out of the line. */
export function QueueLine({
  live,
  treeId,
  name,
  leaving,
  onLeave,
}: {
  live: LiveRun
  treeId: string
  name: string
  leaving: boolean
  onLeave: () => void
}) {
  const words = useWords()
  const holder = live.queue?.seat_held_by ?? null
  const place = live.queue?.queue_position ?? live.state.queuePosition
  return (
    <div className="queue-line" role="status" data-testid={testIds.queuePosition} data-position={place}>
      <span className="queue-dot" aria-hidden="true" />
      <span className="queue-words">
        {holder?.tree_id === treeId ? (
          words.talk.queueHere(name)
        ) : holder?.tree_id != null && holder.tree_title != null ? (
          <Link to={paths.tree(holder.tree_id)}>
            {words.talk.queueHolder(name, holder.tree_title === '' ? words.characters.unnamedTree : holder.tree_title)}
          </Link>
        ) : (
          words.talk.queueElsewhere(name)
        )}
        {' · '}
        {place > 0 ? words.talk.queuePosition(place) : words.talk.queueStarting}
      </span>
      <Button look="quiet" busy={leaving} testId={testIds.queueCancel} onClick={onLeave}>
        {words.talk.queueCancel}
      </Button>
    </div>
  )
}
