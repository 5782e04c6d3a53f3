import type { ReactNode } from 'react'
import { Empty } from '../../parts/small.tsx'
import { Link, paths, usePlace } from '../../routing/router.tsx'
import { useSession } from '../../store/session.tsx'
import { useWords } from '../../words/words.ts'
import { ChainView } from './chain.tsx'
import { EventsView } from './events.tsx'
import { KillView } from './kill.tsx'
import { OutboxView } from './outbox.tsx'
import { OwnersView } from './owners.tsx'
import { RunsView } from './runs.tsx'

const tabs = ['runs', 'outbox', 'kill', 'events', 'owners'] as const
type Tab = (typeof tabs)[number]

const views: Record<Tab, () => ReactNode> = {
  runs: RunsView,
  outbox: OutboxView,
  kill: KillView,
  events: EventsView,
  owners: OwnersView,
}

/** What an operator sees: the record, and whether it holds. */
export function AdminPage() {
  const words = useWords().admin
  const { owner } = useSession()
  const asked = usePlace().query.get('tab')
  const tab = tabs.find((name) => name === asked) ?? 'runs'
  if (owner.role !== 'admin') return <Empty title={words.title} text={words.notAdmin} />
  const View = views[tab]
  return (
    <div className="page page-wide admin">
      <h1>{words.title}</h1>
      <p className="page-lead">{words.text}</p>
      <ChainView />
      <nav className="tabs" aria-label={words.title}>
        {tabs.map((name) => (
          <Link
            key={name}
            to={`${paths.admin}?tab=${name}`}
            className="tab"
            aria-current={name === tab ? 'page' : undefined}
            data-testid={`admin-${name}`}
          >
            {words[name]}
          </Link>
        ))}
      </nav>
      <View />
    </div>
  )
}
