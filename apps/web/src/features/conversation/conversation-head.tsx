import { useState } from 'react'
import type { CharacterView, TreeView } from '#contracts'
import { treeApi } from '../../api/endpoints.ts'
import { IconButton } from '../../parts/button.tsx'
import { ConfirmDialog } from '../../parts/dialog.tsx'
import { Avatar, Badge } from '../../parts/small.tsx'
import { toastProblem } from '../../parts/toasts.tsx'
import type { DrawerFace } from '../../routing/router.tsx'
import { Link, navigate, paths } from '../../routing/router.tsx'
import { invalidate } from '../../store/resource.ts'
import { useSession } from '../../store/session.tsx'
import { useWords } from '../../words/words.ts'
import { DrawerTabs } from '../frame/drawer.tsx'

type HeadProps = { tree: TreeView; character: CharacterView | null; face: DrawerFace | null; onRenamed: () => Promise<void> }

/** The head of a conversation: with whom, its title (a press renames it), and the faces of the drawer. */
export function ConversationHead({ tree, character, face, onRenamed }: HeadProps) {
  const words = useWords()
  const { model } = useSession().instance
  const [deleting, setDeleting] = useState(false)
  const shownTitle = tree.title === '' ? words.characters.unnamedTree : tree.title
  return (
    <header className="talk-head">
      {character !== null && (
        <Link
          to={paths.character(character.id)}
          className="talk-character"
          title={words.characters.open(character.name)}
          aria-label={words.characters.open(character.name)}
        >
          <Avatar character={character} />
        </Link>
      )}
      <div className="talk-title">
        <TitleField
          key={`${tree.id} ${tree.title}`}
          title={tree.title}
          shownTitle={shownTitle}
          onRename={(title) => treeApi.rename(tree.id, title).then(onRenamed)}
        />
        <p className="talk-facts faint">
          {character?.name}
          {tree.realm.kind !== 'real' && <Badge tone="indigo">{tree.realm.name}</Badge>}
          {!model.demo && <span title={words.banner.model(model.name)}>{model.name}</span>}
        </p>
      </div>
      <IconButton icon="trash" className="talk-delete" label={words.talk.deleteTree} onClick={() => setDeleting(true)} />
      {face === null && <DrawerTabs current={null} />}
      {deleting && (
        <ConfirmDialog
          danger
          title={words.talk.deleteTreeTitle}
          text={words.talk.deleteTreeText}
          confirm={words.talk.deleteTree}
          onClose={() => setDeleting(false)}
          act={async () => {
            await treeApi.remove(tree.id)
            invalidate('trees:')
            navigate(character === null ? paths.home : paths.character(character.id))
          }}
        />
      )}
    </header>
  )
}

function TitleField({ title, shownTitle, onRename }: { title: string; shownTitle: string; onRename: (title: string) => Promise<void> }) {
  const words = useWords()
  const [editing, setEditing] = useState(false)
  const [text, setText] = useState(title)
  const finish = () => {
    setEditing(false)
    if (text.trim() === '' || text.trim() === title) setText(title)
    else onRename(text.trim()).catch(toastProblem)
  }
  if (!editing) {
    return (
      <h1>
        <button type="button" className="title-button" title={words.talk.renameTitle} onClick={() => setEditing(true)}>
          {shownTitle}
        </button>
      </h1>
    )
  }
  return (
    <input
      className="title-input"
      value={text}
      maxLength={400}
      autoFocus
      aria-label={words.talk.renameTitle}
      onChange={(event) => setText(event.target.value)}
      onBlur={finish}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return
        if (event.key === 'Enter') finish()
        if (event.key === 'Escape') {
          event.preventDefault()
          setText(title)
          setEditing(false)
        }
      }}
    />
  )
}
