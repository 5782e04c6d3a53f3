import { useState } from 'react'
import type { CharacterView } from '#contracts'
import { characterApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ConfirmDialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Avatar, Badge, Loading, When } from '../../parts/small.tsx'
import { toast, toastProblem } from '../../parts/toasts.tsx'
import { Link, navigate, paths } from '../../routing/router.tsx'
import { invalidate, put } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { CharacterGrant } from '../grants/character-grant.tsx'
import { CardText } from './card-text.tsx'
import { useCharacter, useTreesOf } from './data.ts'
import { EditCardDialog } from './edit-card.tsx'
import { importNoteOf } from './import.tsx'
import { Lorebooks } from './lorebooks.tsx'
import { NewConversationForm } from './new-conversation.tsx'
import { Versions } from './versions.tsx'

/** One character: the text that it is made of, its conversations, and what can be done with it. */
export function CharacterPage({ id }: { id: string }) {
  const words = useWords()
  const character = useCharacter(id)
  const [open, setOpen] = useState<'edit' | 'delete' | null>(null)
  if (character.data === undefined)
    return (
      <div className="page">
        {character.problem === null ? <Loading /> : <ProblemNote problem={character.problem} onRetry={character.reload} />}
      </div>
    )
  const view = character.data
  return (
    <div className="page character-page">
      <header className="character-head">
        <Avatar character={view} size="large" />
        <div>
          <h1>{view.name}</h1>
          <p className="character-facts">
            {view.nickname !== null && <span>{view.nickname}</span>}
            {view.demo && <Badge>{words.characters.demo}</Badge>}
            {view.realm.kind !== 'real' && <Badge tone="indigo">{view.realm.name}</Badge>}
            {!view.accepted && <Badge tone="amber">{words.characters.untrusted}</Badge>}
            <span className="faint">{words.characters.version(view.version)}</span>
            {view.tags.map((tag) => (
              <Badge key={tag}>{tag}</Badge>
            ))}
          </p>
        </div>
      </header>
      {!view.accepted && <AcceptNotice character={view} />}
      {view.accepted && <NewConversationForm character={view} />}
      <Conversations characterId={id} />
      <section>
        <div className="section-head">
          <h2>{words.characters.card}</h2>
          <Button look="quiet" icon="pen" onClick={() => setOpen('edit')}>
            {words.characters.editCard}
          </Button>
        </div>
        <CardText character={view} />
      </section>
      {!view.accepted && <NewConversationForm character={view} />}
      <CharacterGrant characterId={id} />
      <Lorebooks characterId={id} />
      <Versions characterId={id} />
      <section>
        <h2>{words.characters.export}</h2>
        <div className="button-row">
          <a className="button button-plain" href={characterApi.exportUrl(id, 'json-v3')} download>
            {words.characters.exportV3}
          </a>
          <a className="button button-plain" href={characterApi.exportUrl(id, 'json-v2')} download>
            {words.characters.exportV2}
          </a>
          <a className="button button-plain" href={characterApi.exportUrl(id, 'png')} download>
            {words.characters.exportPng}
          </a>
        </div>
      </section>
      <section className="page-end">
        <Button look="danger" icon="trash" onClick={() => setOpen('delete')}>
          {words.characters.deleteConfirm}
        </Button>
      </section>
      {open === 'edit' && <EditCardDialog character={view} onClose={() => setOpen(null)} />}
      {open === 'delete' && (
        <ConfirmDialog
          danger
          title={words.characters.deleteTitle(view.name)}
          text={words.characters.deleteText}
          confirm={words.characters.deleteConfirm}
          onClose={() => setOpen(null)}
          act={async () => {
            await characterApi.remove(id)
            invalidate('characters', 'trees:', 'inbox:')
            navigate(paths.home)
          }}
        />
      )}
    </div>
  )
}

function AcceptNotice({ character }: { character: CharacterView }) {
  const words = useWords()
  const [busy, setBusy] = useState(false)
  const note = importNoteOf(character.id)
  const accept = () => {
    setBusy(true)
    characterApi
      .accept(character.id)
      .then((accepted) => {
        put(`character:${character.id}`, accepted)
        invalidate('characters', 'versions:')
        toast({ text: words.characters.acceptedToast(accepted.name) })
      })
      .catch(toastProblem)
      .finally(() => setBusy(false))
  }
  return (
    <section className="notice notice-amber" data-testid={testIds.importReport}>
      <h2>{words.characters.untrustedTitle}</h2>
      <p>{words.characters.untrustedText}</p>
      {note !== null && (
        <>
          <h3>{words.characters.reportTitle}</h3>
          <p className="faint">{words.characters.imported(note.format.toUpperCase(), note.spec_version.toUpperCase())}</p>
          {note.report.length === 0 ? (
            <p>{words.characters.reportClean}</p>
          ) : (
            <ul className="report">
              {note.report.map((entry) => (
                <li key={`${entry.path} ${entry.code}`}>
                  <code>{entry.path === '' ? '·' : entry.path}</code> {entry.message}
                </li>
              ))}
            </ul>
          )}
        </>
      )}
      <Button look="strong" busy={busy} testId={testIds.acceptCard} onClick={accept}>
        {words.characters.accept}
      </Button>
    </section>
  )
}

function Conversations({ characterId }: { characterId: string }) {
  const words = useWords()
  const format = useFormat()
  const trees = useTreesOf(characterId)
  if (trees.data === undefined) return trees.problem === null ? <Loading /> : <ProblemNote problem={trees.problem} onRetry={trees.reload} />
  if (trees.data.items.length === 0) return null
  return (
    <section>
      <h2>{words.characters.conversations}</h2>
      <ul className="tree-rows">
        {trees.data.items.map((tree) => (
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
