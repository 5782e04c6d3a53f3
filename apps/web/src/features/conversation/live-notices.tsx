import { Link, paths } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { QueueLine } from './queue-line.tsx'
import type { LiveRun } from './use-live-run.ts'

type LiveNoticesProps = {
  live: LiveRun
  treeId: string
  name: string
  /** The question that is answered on a branch which is not shown. */
  elsewhereId: string | null
  leaving: boolean
  onLeave: () => void
}

/** What there is to say of a run beside its words: that it waits, that the line dropped, that it goes on elsewhere. */
export function LiveNotices({ live, treeId, name, elsewhereId, leaving, onLeave }: LiveNoticesProps) {
  const words = useWords().talk
  return (
    <>
      {elsewhereId !== null && (
        <p className="queue-line">
          {words.liveElsewhere} <Link to={paths.node(treeId, elsewhereId)}>{words.liveElsewhereGo}</Link>
        </p>
      )}
      {live.state.phase === 'queued' && <QueueLine live={live} treeId={treeId} name={name} leaving={leaving} onLeave={onLeave} />}
      {live.reconnecting && (
        <p className="queue-line" role="status" data-testid={testIds.reconnecting}>
          <span className="queue-dot" aria-hidden="true" />
          {words.reconnecting}
        </p>
      )}
      {live.broken && <p className="queue-line">{words.sequenceBroken}</p>}
    </>
  )
}
