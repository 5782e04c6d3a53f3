import type { IconName } from '../../parts/icons.tsx'
import { Icon } from '../../parts/icons.tsx'
import { addressWith, drawerFaceOf, Link, paths, usePlace } from '../../routing/router.tsx'
import { readPersisted } from '../../store/persisted.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useWaitingCount } from '../actions/data.ts'

/** The phone's way around: one column, five places. */
export function BottomBar() {
  const words = useWords()
  const { route, query } = usePlace()
  const waiting = useWaitingCount()
  const face = route.name === 'tree' ? drawerFaceOf(query) : null
  const treeId = route.name === 'tree' ? route.id : readPersisted('session', 'lastTree')
  const treePath = route.name === 'tree' ? window.location.pathname : treeId === null ? null : paths.tree(treeId)
  const items: { icon: IconName; label: string; to: string | null; current: boolean; count?: number }[] = [
    { icon: 'people', label: words.frame.characters, to: paths.home, current: route.name === 'home' || route.name === 'character' },
    { icon: 'talk', label: words.frame.talk, to: treePath, current: route.name === 'tree' && face === null },
    {
      icon: 'map',
      label: words.frame.map,
      to: treePath === null ? null : route.name === 'tree' ? addressWith({ drawer: 'map' }) : `${treePath}?drawer=map`,
      current: face === 'map',
    },
    {
      icon: 'memory',
      label: words.frame.memory,
      to: route.name === 'tree' ? addressWith({ drawer: 'memory' }) : paths.memory,
      current: route.name === 'memory' || face === 'memory',
      count: waiting,
    },
    { icon: 'settings', label: words.frame.settings, to: paths.settings, current: route.name === 'settings' || route.name === 'admin' },
  ]
  return (
    <nav className="bottom-bar" aria-label={words.common.more} data-testid={testIds.bottomBar}>
      {items.map((item) =>
        item.to === null ? (
          <span key={item.icon} className="bottom-item bottom-item-off" aria-disabled="true">
            <Icon name={item.icon} />
            {item.label}
          </span>
        ) : (
          <Link key={item.icon} to={item.to} className="bottom-item" aria-current={item.current ? 'page' : undefined}>
            <Icon name={item.icon} />
            {item.label}
            {item.count !== undefined && item.count > 0 && <span className="count">{item.count}</span>}
          </Link>
        ),
      )}
    </nav>
  )
}
