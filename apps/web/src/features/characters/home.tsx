import { Button, IconButton } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Avatar, Badge, Empty, Loading, When } from '../../parts/small.tsx'
import { Link, navigate, paths, useQueryField } from '../../routing/router.tsx'
import { phone, useMedia } from '../../words/preferences.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { CharacterList } from './character-list.tsx'
import { CreateCharacterDialog } from './create-character.tsx'
import { useCharacters, useTrees } from './data.ts'
import { useImport } from './import.tsx'

const recentTrees = 5

/** Where one begins: the last conversations and everybody there is. */
export function Home() {
  const words = useWords()
  const characters = useCharacters()
  const { choose, busy } = useImport()
  const isPhone = useMedia(phone)
  const [, setSearch] = useQueryField('search')
  const [creating, setCreating] = useQueryField('create')
  if (characters.data === undefined)
    return (
      <div className="page">
        {characters.problem === null ? <Loading /> : <ProblemNote problem={characters.problem} onRetry={characters.reload} />}
      </div>
    )
  const people = characters.data.items
  return (
    <div className="page home">
      <div className="section-head">
        <h1>{words.home.title}</h1>
        {isPhone && <IconButton icon="search" label={words.frame.search} onClick={() => setSearch('1')} />}
      </div>
      {people.length === 0 ? (
        <Empty title={words.home.emptyTitle} text={words.home.emptyText} />
      ) : isPhone ? (
        <CharacterList />
      ) : (
        <ul className="home-people">
          {people.map((character) => (
            <li key={character.id}>
              <Link to={paths.character(character.id)} className="home-person">
                <Avatar character={character} size="large" />
                <span className="home-person-name">{character.name}</span>
                <span className="home-person-text">{firstSentence(character.description)}</span>
                <span className="home-person-badges">
                  {character.demo && <Badge>{words.characters.demo}</Badge>}
                  {!character.accepted && <Badge tone="amber">{words.characters.untrusted}</Badge>}
                  {character.realm.kind !== 'real' && <Badge tone="indigo">{character.realm.name}</Badge>}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      <div className="home-actions">
        <Button icon="import" busy={busy} onClick={choose}>
          {words.characters.importCard}
        </Button>
        <Button icon="pen" onClick={() => setCreating('1')}>
          {words.characters.create}
        </Button>
      </div>
      {!isPhone && <RecentTrees />}
      {creating !== null && <CreateCharacterDialog onClose={() => setCreating(null)} onCreated={(id) => navigate(paths.character(id))} />}
    </div>
  )
}

function firstSentence(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const end = /[.!?。！？]/.exec(line)
  const sentence = end === null ? line : line.slice(0, end.index + 1)
  return sentence.length > 120 ? `${sentence.slice(0, 119)}…` : sentence
}

function RecentTrees() {
  const words = useWords()
  const format = useFormat()
  const trees = useTrees()
  const recent = [...(trees.data?.items ?? [])].sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1)).slice(0, recentTrees)
  if (recent.length === 0) return null
  return (
    <section>
      <h2>{words.home.recent}</h2>
      <ul className="tree-rows">
        {recent.map((tree) => (
          <li key={tree.id}>
            <Link to={paths.tree(tree.id)} className="tree-row">
              <span className="tree-row-title">{tree.title === '' ? words.characters.unnamedTree : tree.title}</span>
              <span className="faint">{words.characters.messages(format.number(tree.node_count))}</span>
              <span className="faint">
                <When at={tree.updated_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
