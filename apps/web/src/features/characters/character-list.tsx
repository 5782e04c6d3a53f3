import { useState } from 'react'
import type { CharacterView, TreeView } from '#contracts'
import { IconButton } from '../../parts/button.tsx'
import { Icon } from '../../parts/icons.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Avatar, Badge, Loading } from '../../parts/small.tsx'
import { toastProblem } from '../../parts/toasts.tsx'
import { Link, paths, usePlace } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { startConversation, useCharacters, useTree, useTrees } from './data.ts'

const shownTrees = 6
const openWhenFew = 3

/** The character that the present view is about, if any. */
export function useCurrentCharacterId(): string | null {
  const { route } = usePlace()
  const tree = useTree(route.name === 'tree' ? route.id : null)
  if (route.name === 'character') return route.id
  return tree.data?.character_ids[0] ?? null
}

export function CharacterList() {
  const characters = useCharacters()
  const trees = useTrees()
  const current = useCurrentCharacterId()
  if (characters.data === undefined)
    return characters.problem === null ? <Loading /> : <ProblemNote problem={characters.problem} onRetry={characters.reload} />
  const few = characters.data.items.length <= openWhenFew
  return (
    <ul className="people">
      {characters.data.items.map((character) => (
        <CharacterItem
          key={character.id}
          character={character}
          trees={(trees.data?.items ?? []).filter((tree) => tree.character_ids.includes(character.id))}
          isCurrent={character.id === current}
          startOpen={few}
        />
      ))}
    </ul>
  )
}

function CharacterItem({
  character,
  trees,
  isCurrent,
  startOpen,
}: {
  character: CharacterView
  trees: TreeView[]
  isCurrent: boolean
  startOpen: boolean
}) {
  const words = useWords()
  const { route } = usePlace()
  const [toggled, setToggled] = useState<boolean | null>(null)
  const open = toggled ?? (isCurrent || startOpen)
  const [starting, setStarting] = useState(false)
  const start = () => {
    setStarting(true)
    startConversation({ characterId: character.id })
      .catch(toastProblem)
      .finally(() => setStarting(false))
  }
  return (
    <li className={isCurrent ? 'person person-current' : 'person'} data-testid={testIds.characterItem} data-character-id={character.id}>
      <div className="person-head">
        <Link
          to={paths.character(character.id)}
          className="person-link"
          aria-current={route.name === 'character' && isCurrent ? 'page' : undefined}
        >
          <Avatar character={character} />
          <span className="person-words">
            <span className="person-name">{character.name}</span>
            {character.demo && <Badge>{words.characters.demo}</Badge>}
            {!character.accepted && <Badge tone="amber">{words.characters.untrusted}</Badge>}
          </span>
        </Link>
        <IconButton icon="plus" label={words.characters.newConversationWith(character.name)} disabled={starting} onClick={start} />
        <button
          type="button"
          className="icon-button"
          aria-expanded={open}
          aria-label={`${words.characters.conversations}: ${character.name}`}
          onClick={() => setToggled(!open)}
        >
          <Icon name={open ? 'chevronDown' : 'right'} />
        </button>
      </div>
      {open && <TreeLinks trees={trees} character={character} />}
    </li>
  )
}

function TreeLinks({ trees, character }: { trees: TreeView[]; character: CharacterView }) {
  const words = useWords()
  const format = useFormat()
  const { route } = usePlace()
  if (trees.length === 0) return <p className="person-none">{words.characters.noTrees}</p>
  return (
    <ul className="person-trees">
      {trees.slice(0, shownTrees).map((tree) => (
        <li key={tree.id}>
          <Link
            to={paths.tree(tree.id)}
            className="tree-link"
            data-testid={testIds.treeItem}
            data-tree-id={tree.id}
            aria-current={route.name === 'tree' && route.id === tree.id ? 'page' : undefined}
          >
            <span className="tree-link-title">{tree.title === '' ? words.characters.unnamedTree : tree.title}</span>
            <span className="tree-link-when">{format.relativeShort(tree.updated_at)}</span>
          </Link>
        </li>
      ))}
      {trees.length > shownTrees && (
        <li>
          <Link to={paths.character(character.id)} className="tree-link tree-link-all">
            {words.characters.showAll(trees.length)}
          </Link>
        </li>
      )}
    </ul>
  )
}
