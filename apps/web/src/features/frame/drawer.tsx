import { lazy, Suspense } from 'react'
import { IconButton } from '../../parts/button.tsx'
import { Loading } from '../../parts/small.tsx'
import { addressWith, navigate } from '../../routing/router.tsx'
import type { DrawerFace } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'

const TreeMap = lazy(() => import('../map/tree-map.tsx').then((module) => ({ default: module.TreeMap })))
const DrawerMemory = lazy(() => import('../memory/drawer-memory.tsx').then((module) => ({ default: module.DrawerMemory })))
const DrawerWhy = lazy(() => import('../explanation/drawer-why.tsx').then((module) => ({ default: module.DrawerWhy })))

const faces: readonly DrawerFace[] = ['map', 'memory', 'why']
const faceTestIds = { map: testIds.drawerMap, memory: testIds.drawerMemory, why: testIds.drawerWhy }

/** Opens a face of the drawer beside the conversation. */
export function openDrawer(face: DrawerFace, changes: Record<string, string | null> = {}): void {
  navigate(addressWith({ drawer: face, ...changes }))
}

export function closeDrawer(): void {
  navigate(addressWith({ drawer: null, run: null }))
}

/** The three faces as tabs. They stand in the drawer's head while it is open, else in the head of the conversation. */
export function DrawerTabs({ current }: { current: DrawerFace | null }) {
  const words = useWords()
  return (
    <div className="drawer-tabs" role="group" aria-label={words.frame.drawer}>
      {faces.map((face) => (
        <button
          key={face}
          type="button"
          className="drawer-tab"
          aria-pressed={face === current}
          data-testid={faceTestIds[face]}
          onClick={() => (face === current ? closeDrawer() : openDrawer(face))}
        >
          {words.frame[face]}
        </button>
      ))}
    </div>
  )
}

export function Drawer({ treeId, face }: { treeId: string; face: DrawerFace }) {
  const words = useWords()
  return (
    <aside className="drawer" aria-label={words.frame[face]} data-testid={testIds.drawer} data-face={face}>
      <header className="drawer-head">
        <DrawerTabs current={face} />
        <IconButton icon="close" label={words.frame.closeDrawer} testId={testIds.drawerClose} onClick={closeDrawer} />
      </header>
      <div className="drawer-body">
        <Suspense fallback={<Loading />}>
          {face === 'map' && <TreeMap key={treeId} treeId={treeId} />}
          {face === 'memory' && <DrawerMemory key={treeId} treeId={treeId} />}
          {face === 'why' && <DrawerWhy key={treeId} treeId={treeId} />}
        </Suspense>
      </div>
    </aside>
  )
}
