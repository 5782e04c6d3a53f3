import { useState } from 'react'
import type { MemoryDetail } from '#contracts'
import { memoryApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ConfirmDialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge, Loading, When } from '../../parts/small.tsx'
import { toast } from '../../parts/toasts.tsx'
import { Link, paths } from '../../routing/router.tsx'
import { useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { memoriesChanged } from './data.ts'
import { MemoryFacts, MemorySources } from './memory-facts.tsx'
import { wordDiff } from './word-diff.ts'

/** One memory with its sources, versions, recalls, and what can be done with it. */
export function MemoryDetailView({ id, onClose }: { id: string; onClose: () => void }) {
  const words = useWords()
  const memory = useResource(`memory:${id}`, () => memoryApi.read(id))
  const [correcting, setCorrecting] = useState(false)
  const [deleting, setDeleting] = useState(false)
  if (memory.data === undefined)
    return memory.problem === null ? <Loading /> : <ProblemNote problem={memory.problem} onRetry={memory.reload} />
  const view = memory.data
  const gone = view.text === null
  return (
    <div className="memory-detail">
      {correcting ? <CorrectForm memory={view} onDone={() => setCorrecting(false)} /> : null}
      <MemorySources memory={view} all />
      <h4>{words.memory.versions}</h4>
      <VersionList memory={view} />
      <h4>{words.memory.recalledIn}</h4>
      <RecallList memory={view} />
      {!gone && (
        <div className="button-row">
          {view.state === 'live' && !correcting && (
            <Button testId={testIds.memoryCorrect} onClick={() => setCorrecting(true)}>
              {words.memory.correct}
            </Button>
          )}
          <Button look="danger" icon="trash" testId={testIds.memoryDelete} onClick={() => setDeleting(true)}>
            {words.memory.delete}
          </Button>
        </div>
      )}
      {deleting && (
        <ConfirmDialog
          danger
          title={words.memory.deleteTitle}
          text={words.memory.deleteText}
          confirm={words.memory.deleteConfirm}
          onClose={() => setDeleting(false)}
          act={async () => {
            await memoryApi.remove(id)
            toast({ text: words.memory.deletedToast })
            onClose()
            memoriesChanged()
          }}
        />
      )}
    </div>
  )
}

function CorrectForm({ memory, onDone }: { memory: MemoryDetail; onDone: () => void }) {
  const words = useWords()
  const [text, setText] = useState(memory.text ?? '')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const save = async () => {
    setBusy(true)
    setProblem(null)
    try {
      await memoryApi.correct(memory.id, text, memory.version)
      toast({ text: words.memory.corrected })
      memoriesChanged()
      onDone()
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  return (
    <div className="correct">
      <MemoryFacts memory={memory} />
      <textarea value={text} rows={3} autoFocus aria-label={words.memory.correct} onChange={(event) => setText(event.target.value)} />
      <p className="faint">{words.memory.correctHint}</p>
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="button-row">
        <Button look="strong" busy={busy} disabled={text.trim() === '' || text === memory.text} onClick={() => void save()}>
          {words.memory.correctSave}
        </Button>
        <Button look="quiet" onClick={onDone}>
          {words.common.cancel}
        </Button>
      </div>
    </div>
  )
}

function VersionList({ memory }: { memory: MemoryDetail }) {
  const words = useWords().memory
  const versions = [...memory.versions].sort((a, b) => b.version - a.version)
  return (
    <ol className="memory-versions">
      {versions.map((version, index) => {
        const before = versions[index + 1]
        return (
          <li key={version.id}>
            <p className="faint">
              {words.versionOf(version.version)} · {words.cause[version.cause] ?? version.cause} · <When at={version.created_at} />{' '}
              {version.live && <Badge tone="indigo">{words.liveVersion}</Badge>}
            </p>
            {version.text === null ? (
              <p className="faint">{words.erased}</p>
            ) : (
              <p className="diff">{before?.text == null ? version.text : <Diff before={before.text} after={version.text} />}</p>
            )}
          </li>
        )
      })}
    </ol>
  )
}

function Diff({ before, after }: { before: string; after: string }) {
  return (
    <>
      {wordDiff(before, after).map((piece, index) => {
        // The pieces of a finished diff do not move.
        if (piece.kind === 'added') return <ins key={index}>{piece.text}</ins>
        if (piece.kind === 'removed') return <del key={index}>{piece.text}</del>
        return <span key={index}>{piece.text}</span>
      })}
    </>
  )
}

function RecallList({ memory }: { memory: MemoryDetail }) {
  const words = useWords().memory
  if (memory.recalled_in.length === 0) return <p className="faint">{words.recalledNowhere}</p>
  return (
    <ul className="plain-list">
      {memory.recalled_in.map((recall) => (
        <li key={recall.run_id}>
          {recall.tree_id === null ? (
            <When at={recall.at} />
          ) : (
            <Link to={`${paths.tree(recall.tree_id)}?drawer=why&run=${recall.run_id}`}>
              <RecalledFor at={recall.at} />
            </Link>
          )}
        </li>
      ))}
    </ul>
  )
}

function RecalledFor({ at }: { at: string }) {
  const words = useWords().memory
  const format = useFormat()
  return <time dateTime={at}>{words.recalledRun(format.relative(at))}</time>
}
