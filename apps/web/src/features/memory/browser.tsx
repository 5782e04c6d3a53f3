import { useState } from 'react'
import { MemoryLevel, MemoryState, MemoryType } from '../../choices.ts'
import type { MemoryView } from '#contracts'
import { characterApi, memoryApi } from '../../api/endpoints.ts'
import { Button, Select } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Empty, Loading } from '../../parts/small.tsx'
import { useQueryField } from '../../routing/router.tsx'
import { useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { languageOfText } from '../../words/text-language.ts'
import { useWords } from '../../words/words.ts'
import { useCharacters } from '../characters/data.ts'
import { MemoryDetailView } from './detail.tsx'
import { MemoryFacts, MemoryHistory } from './memory-facts.tsx'

const pageSize = 30

/** All memories, filtered; the filters and the opened memory stand in the address. */
export function MemoryBrowser({ characterId }: { characterId: string | null }) {
  const words = useWords()
  const [level, setLevel] = useQueryField('level')
  const [type, setType] = useQueryField('type')
  const [state, setState] = useQueryField('state')
  const [realm, setRealm] = useQueryField('realm')
  const [chosenCharacter, setCharacter] = useQueryField('who')
  const [openId, setOpenId] = useQueryField('memory')
  const characters = useCharacters().data?.items ?? []
  const realms = useResource('realms', characterApi.realms).data?.items ?? []
  const who = characterId ?? chosenCharacter
  const query = { character_id: who, level, type, state: state === null ? 'live' : state === 'all' ? null : state, realm_id: realm }
  const any = { value: '', label: words.common.all }
  return (
    <section className="browser">
      <h3>{words.memory.browser}</h3>
      <div className="filters">
        {characterId === null && (
          <Select
            label={words.memory.filterCharacter}
            value={who ?? ''}
            onChange={setCharacter}
            options={[
              { value: '', label: words.memory.anyone },
              ...characters.map((character) => ({ value: character.id, label: character.name })),
            ]}
          />
        )}
        <Select
          label={words.memory.filterLevel}
          value={level ?? ''}
          onChange={setLevel}
          options={[any, ...MemoryLevel.map((value) => ({ value, label: words.memory.level[value] }))]}
        />
        <Select
          label={words.memory.filterType}
          value={type ?? ''}
          onChange={setType}
          options={[any, ...MemoryType.map((value) => ({ value, label: words.memory.type[value] }))]}
        />
        <Select
          label={words.memory.filterState}
          value={state ?? 'live'}
          onChange={(value) => setState(value === 'live' ? null : value)}
          options={[
            { value: 'all', label: words.common.all },
            ...MemoryState.map((value) => ({ value, label: words.memory.state[value] })),
          ]}
        />
        {realms.length > 1 && (
          <Select
            label={words.memory.filterRealm}
            value={realm ?? ''}
            onChange={setRealm}
            options={[any, ...realms.map((one) => ({ value: one.id, label: one.kind === 'real' ? words.characters.realmReal : one.name }))]}
          />
        )}
      </div>
      <MemoryList key={JSON.stringify(query)} query={query} openId={openId} onOpen={setOpenId} />
    </section>
  )
}

function MemoryList({
  query,
  openId,
  onOpen,
}: {
  query: Record<string, string | null>
  openId: string | null
  onOpen: (id: string | null) => void
}) {
  const words = useWords()
  const key = `memories:${JSON.stringify(query)}`
  const first = useResource(key, () => memoryApi.list({ ...query, limit: pageSize }))
  const [more, setMore] = useState<{ items: MemoryView[]; next: string | null } | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  if (first.data === undefined) return first.problem === null ? <Loading /> : <ProblemNote problem={first.problem} onRetry={first.reload} />
  const items = [...first.data.items, ...(more?.items ?? [])]
  const next = more === null ? first.data.next_cursor : more.next
  const readMore = () => {
    memoryApi
      .list({ ...query, limit: pageSize, cursor: next })
      .then((page) => setMore({ items: [...(more?.items ?? []), ...page.items], next: page.next_cursor }), setProblem)
  }
  const elsewhere = openId !== null && !items.some((memory) => memory.id === openId)
  return (
    <>
      {elsewhere && <MemoryDetailView id={openId} onClose={() => onOpen(null)} />}
      {items.length === 0 && <Empty title={words.memory.browserEmptyTitle} text={words.memory.browserEmptyText} />}
      <ul className="memory-list">
        {items.map((memory) => (
          <li key={memory.id} className="memory-row" data-testid={testIds.memoryItem} data-memory-id={memory.id} data-state={memory.state}>
            <p className="memory-text" lang={languageOfText(memory.text ?? '')}>
              {memory.text ?? <em>{words.memory.erased}</em>}
            </p>
            <MemoryFacts memory={memory} />
            <MemoryHistory memory={memory} />
            <Button look="quiet" aria-expanded={memory.id === openId} onClick={() => onOpen(memory.id === openId ? null : memory.id)}>
              {memory.id === openId ? words.memory.hideDetails : words.memory.details}
            </Button>
            {memory.id === openId && <MemoryDetailView id={memory.id} onClose={() => onOpen(null)} />}
          </li>
        ))}
      </ul>
      {next !== null && <Button onClick={readMore}>{words.common.loadMore}</Button>}
      {problem !== null && <ProblemNote problem={problem} />}
    </>
  )
}
