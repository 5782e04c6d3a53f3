import { useState } from 'react'
import type { MemoryView } from '#contracts'
import { memoryApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Empty, Loading } from '../../parts/small.tsx'
import { toast } from '../../parts/toasts.tsx'
import { testIds } from '../../test-ids.ts'
import { languageOfText } from '../../words/text-language.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { useHasWaitingActions, WaitingActions } from '../actions/waiting.tsx'
import { useCharacters } from '../characters/data.ts'
import { memoriesChanged, useInbox, useInboxWatch, watchedInterval } from './data.ts'
import { MemoryFacts, MemorySources } from './memory-facts.tsx'

/** What waits for the owner, then what was kept by itself and can still be undone. */
export function InboxView({ characterId }: { characterId: string | null }) {
  return (
    <div className="inbox">
      <WaitingActions characterId={characterId} />
      <WaitingMemories characterId={characterId} />
    </div>
  )
}

function WaitingMemories({ characterId }: { characterId: string | null }) {
  const words = useWords().memory
  const inbox = useInbox(characterId)
  const actionsWait = useHasWaitingActions(characterId)
  useInboxWatch(watchedInterval)
  if (inbox.data === undefined) return inbox.problem === null ? <Loading /> : <ProblemNote problem={inbox.problem} onRetry={inbox.reload} />
  const { proposed, automatic } = inbox.data
  if (proposed.length + automatic.length === 0)
    return actionsWait ? null : <Empty title={words.inboxEmptyTitle} text={words.inboxEmptyText} />
  return (
    <>
      {proposed.length > 0 && (
        <section>
          <h3>{words.proposedTitle}</h3>
          <ul className="cards">
            {proposed.map((memory) => (
              <ProposedCard key={memory.id} memory={memory} named={characterId === null} />
            ))}
          </ul>
        </section>
      )}
      {automatic.length > 0 && (
        <section>
          <h3>{words.automaticTitle}</h3>
          <p className="faint">{words.automaticText}</p>
          <ul className="cards">
            {automatic.map((memory) => (
              <AutomaticCard key={memory.id} memory={memory} named={characterId === null} />
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

function useDecision() {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const decide = async (action: () => Promise<unknown>, said: string) => {
    setBusy(true)
    setProblem(null)
    try {
      await action()
      toast({ text: said })
      memoriesChanged()
    } catch (error) {
      setProblem(error)
      // It may have been decided elsewhere: what stands now is read again.
      memoriesChanged()
    } finally {
      setBusy(false)
    }
  }
  return { busy, problem, decide }
}

function Who({ memory }: { memory: MemoryView }) {
  const character = useCharacters().data?.items.find((candidate) => candidate.id === memory.character_id)
  return character === undefined ? null : <span className="card-who">{character.name}</span>
}

function ProposedCard({ memory, named }: { memory: MemoryView; named: boolean }) {
  const words = useWords()
  const { busy, problem, decide } = useDecision()
  const [text, setText] = useState<string | null>(null)
  return (
    <li className="card" data-testid={testIds.inboxItem} data-memory-id={memory.id} data-state={memory.state}>
      {named && <Who memory={memory} />}
      {text === null ? (
        <p className="memory-text" lang={languageOfText(memory.text ?? '')}>
          {memory.text ?? words.memory.erased}
        </p>
      ) : (
        <textarea value={text} rows={3} autoFocus aria-label={words.memory.editKeep} onChange={(event) => setText(event.target.value)} />
      )}
      <MemoryFacts memory={memory} />
      <MemorySources memory={memory} />
      {problem !== null && <ProblemNote problem={problem} />}
      {text === null ? (
        <div className="button-row">
          <Button
            look="strong"
            busy={busy}
            testId={testIds.confirm}
            onClick={() => void decide(() => memoryApi.confirm(memory.id), words.memory.kept)}
          >
            {words.memory.keep}
          </Button>
          <Button disabled={busy || memory.text === null} testId={testIds.editConfirm} onClick={() => setText(memory.text ?? '')}>
            {words.memory.editKeep}
          </Button>
          <Button
            look="quiet"
            busy={busy}
            testId={testIds.reject}
            onClick={() => void decide(() => memoryApi.reject(memory.id), words.memory.rejected)}
          >
            {words.memory.reject}
          </Button>
        </div>
      ) : (
        <div className="button-row">
          <Button
            look="strong"
            busy={busy}
            disabled={text.trim() === ''}
            testId={testIds.confirm}
            onClick={() => void decide(() => memoryApi.confirm(memory.id, text), words.memory.kept)}
          >
            {words.memory.keepEdited}
          </Button>
          <Button look="quiet" onClick={() => setText(null)}>
            {words.common.cancel}
          </Button>
        </div>
      )}
    </li>
  )
}

function AutomaticCard({ memory, named }: { memory: MemoryView; named: boolean }) {
  const words = useWords().memory
  const format = useFormat()
  const { busy, problem, decide } = useDecision()
  return (
    <li className="card card-automatic" data-testid={testIds.inboxItem} data-memory-id={memory.id} data-state={memory.state}>
      {named && <Who memory={memory} />}
      <p className="memory-text" lang={languageOfText(memory.text ?? '')}>
        {memory.text ?? words.erased}
      </p>
      <MemoryFacts memory={memory} />
      <MemorySources memory={memory} />
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="button-row">
        <UndoButton busy={busy} onUndo={() => void decide(() => memoryApi.undo(memory.id), words.undone)} />
        {memory.undo_until !== null && <span className="faint">{words.undoUntil(format.moment(memory.undo_until))}</span>}
      </div>
    </li>
  )
}

function UndoButton({ busy, onUndo }: { busy: boolean; onUndo: () => void }) {
  const words = useWords()
  return (
    <Button busy={busy} testId={testIds.undo} onClick={onUndo}>
      {words.common.undo}
    </Button>
  )
}
