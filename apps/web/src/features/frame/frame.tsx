import { lazy, Suspense, useEffect, useEffectEvent, useState } from 'react'
import { Empty, Loading } from '../../parts/small.tsx'
import { Toasts, toast } from '../../parts/toasts.tsx'
import { addressWith, drawerFaceOf, Link, navigate, paths, usePlace, useQueryField } from '../../routing/router.tsx'
import type { Route } from '../../routing/router.tsx'
import { writePersisted } from '../../store/persisted.ts'
import { useSessionState } from '../../store/session.tsx'
import { useWords } from '../../words/words.ts'
import { WaitingHint } from '../actions/waiting-hint.tsx'
import { ImportProvider } from '../characters/import.tsx'
import { Home } from '../characters/home.tsx'
import { Conversation } from '../conversation/conversation.tsx'
import { restingInterval, useInboxWatch } from '../memory/data.ts'
import { DemoBanner } from '../session/demo-banner.tsx'
import { BottomBar } from './bottom-bar.tsx'
import { Drawer } from './drawer.tsx'
import { useKeys } from './keys.ts'
import { KeysDialog } from './keys-dialog.tsx'
import { Navigation } from './navigation.tsx'

const CharacterPage = lazy(() => import('../characters/character-page.tsx').then((module) => ({ default: module.CharacterPage })))
const MemoryPage = lazy(() => import('../memory/memory-page.tsx').then((module) => ({ default: module.MemoryPage })))
const AdminPage = lazy(() => import('../admin/admin-page.tsx').then((module) => ({ default: module.AdminPage })))
const SettingsPage = lazy(() => import('../settings/settings-page.tsx').then((module) => ({ default: module.SettingsPage })))
const SearchDialog = lazy(() => import('./search-dialog.tsx').then((module) => ({ default: module.SearchDialog })))

/** Left the people, in the middle the text, right the drawer; on a phone one column and a bottom bar. */
export function Frame() {
  const words = useWords()
  const { route, query } = usePlace()
  const { linkRefused } = useSessionState()
  const [keysOpen, setKeysOpen] = useState(false)
  const [search, setSearch] = useQueryField('search')
  const face = route.name === 'tree' ? drawerFaceOf(query) : null
  useInboxWatch(restingInterval)

  const sayAlreadyIn = useEffectEvent(() => toast({ text: words.session.alreadyIn }))
  useEffect(() => {
    if (linkRefused) sayAlreadyIn()
  }, [linkRefused])

  useEffect(() => {
    if (route.name === 'tree') writePersisted('session', 'lastTree', route.id)
  }, [route])

  useKeys({
    '/': () => {
      setSearch('1')
      return true
    },
    '?': () => {
      setKeysOpen(true)
      return true
    },
    m: () => {
      if (route.name !== 'tree') return false
      navigate(addressWith({ drawer: face === 'map' ? null : 'map' }), { replace: true })
      return true
    },
  })

  return (
    <ImportProvider>
      <a className="skip-link" href="#main">
        {words.frame.skip}
      </a>
      <div className="frame" data-view={route.name} data-drawer={face ?? 'closed'}>
        <div className="banners">
          <DemoBanner />
          <WaitingHint />
        </div>
        <Navigation onSearch={() => setSearch('1')} onKeys={() => setKeysOpen(true)} />
        <main id="main" className="main" tabIndex={-1} aria-label={words.frame.main}>
          <Suspense fallback={<Loading />}>
            <View route={route} />
          </Suspense>
        </main>
        {route.name === 'tree' && face !== null && <Drawer treeId={route.id} face={face} />}
        <BottomBar />
      </div>
      {keysOpen && <KeysDialog onClose={() => setKeysOpen(false)} />}
      {search !== null && (
        <Suspense fallback={null}>
          <SearchDialog onClose={() => setSearch(null)} />
        </Suspense>
      )}
      <Toasts />
    </ImportProvider>
  )
}

function View({ route }: { route: Route }) {
  const words = useWords()
  switch (route.name) {
    case 'home':
      return <Home />
    case 'character':
      return <CharacterPage key={route.id} id={route.id} />
    case 'tree':
      return <Conversation key={route.id} treeId={route.id} nodeId={route.node} />
    case 'memory':
      return <MemoryPage />
    case 'admin':
      return <AdminPage />
    case 'settings':
      return <SettingsPage />
    case 'unknown':
      return (
        <Empty title={words.frame.notFoundTitle} text={words.frame.notFoundText}>
          <Link to={paths.home} className="button button-plain">
            {words.frame.goHome}
          </Link>
        </Empty>
      )
  }
}
