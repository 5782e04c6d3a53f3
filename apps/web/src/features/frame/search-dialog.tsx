import { useEffect, useState } from 'react'
import type { RecallAuditView } from '#contracts'
import { memoryApi } from '../../api/endpoints.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Link, paths, usePlace } from '../../routing/router.tsx'
import { useWords } from '../../words/words.ts'
import { useCurrentCharacterId } from '../characters/character-list.tsx'
import { useCharacters, useTrees } from '../characters/data.ts'
import { shownNodes } from '../conversation/shown-nodes.ts'

const most = 8
const pauseMilliseconds = 300

/** Finds conversations and characters by name, messages of the page by their text, memories as the character would. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const words = useWords()
  const { route } = usePlace()
  const [text, setText] = useState('')
  const characters = useCharacters().data?.items ?? []
  const trees = useTrees().data?.items ?? []
  const characterId = useCurrentCharacterId()
  const speaker = characters.find((character) => character.id === characterId)
  const memories = useMemorySearch(speaker?.id ?? null, text)

  const wanted = text.trim().toLowerCase()
  const holds = (value: string) => wanted !== '' && value.toLowerCase().includes(wanted)
  const foundCharacters = characters.filter((character) => holds(character.name)).slice(0, most)
  const foundTrees = trees.filter((tree) => holds(tree.title)).slice(0, most)
  const foundNodes =
    route.name === 'tree'
      ? shownNodes(route.id)
          .filter((node) => holds(node.text))
          .slice(-most)
          .reverse()
      : []
  const hits = (memories.audit?.hits ?? []).filter((hit) => hit.text !== null)
  const nothing = wanted !== '' && foundCharacters.length + foundTrees.length + foundNodes.length + hits.length === 0 && !memories.loading

  return (
    <Dialog title={words.search.title} onClose={onClose} wide>
      <input
        type="search"
        className="search-input"
        value={text}
        placeholder={words.search.placeholder}
        aria-label={words.search.title}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="search-results">
        {wanted === '' && <p className="faint">{words.search.hint}</p>}
        {nothing && <p className="faint">{words.search.nothing}</p>}
        <Results
          title={words.search.characters}
          items={foundCharacters.map((character) => ({ id: character.id, to: paths.character(character.id), text: character.name }))}
          onFollow={onClose}
        />
        <Results
          title={words.search.conversations}
          items={foundTrees.map((tree) => ({ id: tree.id, to: paths.tree(tree.id), text: tree.title }))}
          onFollow={onClose}
        />
        <Results
          title={words.search.here}
          items={foundNodes.map((node) => ({ id: node.id, to: paths.node(node.tree_id, node.id), text: excerpt(node.text, wanted) }))}
          onFollow={onClose}
        />
        {speaker !== undefined && (
          <Results
            title={words.search.memories(speaker.name)}
            items={hits.map((hit) => ({ id: hit.memory_id, to: `${paths.memory}?memory=${hit.memory_id}`, text: hit.text ?? '' }))}
            onFollow={onClose}
          />
        )}
        {memories.problem !== null && <ProblemNote problem={memories.problem} />}
      </div>
    </Dialog>
  )
}

function Results({ title, items, onFollow }: { title: string; items: { id: string; to: string; text: string }[]; onFollow: () => void }) {
  if (items.length === 0) return null
  return (
    <section>
      <h3>{title}</h3>
      <ul className="search-list">
        {items.map((item) => (
          <li key={item.id}>
            <Link to={item.to} onClick={onFollow}>
              {item.text}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}

function excerpt(text: string, wanted: string): string {
  const at = text.toLowerCase().indexOf(wanted)
  const from = Math.max(0, at - 40)
  const piece = text.slice(from, at + wanted.length + 80).replace(/\s+/g, ' ')
  return `${from > 0 ? '…' : ''}${piece}${at + wanted.length + 80 < text.length ? '…' : ''}`
}

function useMemorySearch(characterId: string | null, text: string) {
  const [state, setState] = useState<{ audit: RecallAuditView | null; problem: unknown; loading: boolean }>({
    audit: null,
    problem: null,
    loading: false,
  })
  useEffect(() => {
    if (characterId === null || text.trim().length < 2) {
      setState({ audit: null, problem: null, loading: false })
      return
    }
    let current = true
    setState((before) => ({ ...before, loading: true }))
    const timer = setTimeout(() => {
      memoryApi.search(characterId, text).then(
        ({ audit }) => current && setState({ audit, problem: null, loading: false }),
        (problem: unknown) => current && setState({ audit: null, problem, loading: false }),
      )
    }, pauseMilliseconds)
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [characterId, text])
  return state
}
