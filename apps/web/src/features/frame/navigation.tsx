import { useState } from 'react'
import { Button, IconButton } from '../../parts/button.tsx'
import { Icon } from '../../parts/icons.tsx'
import { toastProblem } from '../../parts/toasts.tsx'
import { Link, navigate, paths, usePlace } from '../../routing/router.tsx'
import { useSession } from '../../store/session.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { CharacterList, useCurrentCharacterId } from '../characters/character-list.tsx'
import { startConversation, useCharacters } from '../characters/data.ts'
import { useImport } from '../characters/import.tsx'
import { useWaitingCount } from '../actions/data.ts'
import { LanguageSwitch } from './switches.tsx'

/** The left column: who there is, what was said with them, and the ways to the other pages. */
export function Navigation({ onSearch, onKeys }: { onSearch: () => void; onKeys: () => void }) {
  const words = useWords()
  const { owner } = useSession()
  const { route } = usePlace()
  const waiting = useWaitingCount()
  return (
    <nav className="navigation" aria-label={words.frame.navigation} data-testid={testIds.navigation}>
      <div className="navigation-head">
        <Link to={paths.home} className="brand-link" title={words.frame.home}>
          <span className="brand" lang="zh">
            灵台
          </span>
          <span className="brand-latin" lang="zh-Latn">
            Lingtai
          </span>
        </Link>
        <IconButton icon="search" label={`${words.frame.search} (/)`} onClick={onSearch} />
      </div>
      <NavigationActions />
      <div className="navigation-list">
        <CharacterList />
      </div>
      <div className="navigation-foot">
        <Link to={paths.memory} className="foot-link" aria-current={route.name === 'memory' ? 'page' : undefined}>
          <Icon name="memory" />
          {words.frame.memory}
          {waiting > 0 && (
            <span className="count" aria-label={words.actions.waitingCount(waiting)} title={words.actions.waitingCount(waiting)}>
              {waiting}
            </span>
          )}
        </Link>
        <Link to={paths.settings} className="foot-link" aria-current={route.name === 'settings' ? 'page' : undefined}>
          <Icon name="settings" />
          {words.frame.settings}
        </Link>
        {owner.role === 'admin' && (
          <Link to={paths.admin} className="foot-link" aria-current={route.name === 'admin' ? 'page' : undefined}>
            <Icon name="admin" />
            {words.frame.admin}
          </Link>
        )}
        <div className="foot-row">
          <LanguageSwitch />
          <IconButton icon="keys" label={`${words.frame.keys} (?)`} onClick={onKeys} />
        </div>
      </div>
    </nav>
  )
}

function NavigationActions() {
  const words = useWords()
  const characters = useCharacters()
  const currentId = useCurrentCharacterId()
  const { choose, busy } = useImport()
  const [starting, setStarting] = useState(false)
  const target = characters.data?.items.find((character) => character.id === currentId) ?? characters.data?.items[0]
  const start = () => {
    if (target === undefined) return
    setStarting(true)
    startConversation({ characterId: target.id })
      .catch(toastProblem)
      .finally(() => setStarting(false))
  }
  return (
    <div className="navigation-actions">
      <Button
        icon="plus"
        look="strong"
        busy={starting}
        disabled={target === undefined}
        testId={testIds.newConversation}
        onClick={start}
        title={target === undefined ? undefined : words.characters.newConversationWith(target.name)}
      >
        {words.characters.newConversation}
      </Button>
      <div className="navigation-pair">
        <Button icon="import" look="quiet" busy={busy} testId={testIds.importCard} onClick={choose}>
          {words.characters.importCard}
        </Button>
        <Button icon="pen" look="quiet" testId={testIds.createCharacter} onClick={() => navigate(`${paths.home}?create=1`)}>
          {words.characters.create}
        </Button>
      </div>
    </div>
  )
}
