import { useEffect, useState } from 'react'
import type { NodeView, RunAccepted } from '#contracts'
import { nodeApi, runApi, treeApi } from '../../api/endpoints.ts'
import { toast, toastProblem } from '../../parts/toasts.tsx'
import { navigate, paths } from '../../routing/router.tsx'
import { invalidate } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import type { ComposerMode } from './composer.tsx'
import type { Draft } from './drafts.ts'
import { restoreText } from './drafts.ts'
import type { WaitingSteer } from './live-message.tsx'
import type { LiveState } from './live-state.ts'
import { titleOf } from './title-of.ts'
import { useLiveRun } from './use-live-run.ts'
import type { PathHandle } from './use-path.ts'

type AnswerInput = { treeId: string; nodeId: string | null; handle: PathHandle; onFollow: () => void }

/** Asking, and the life of the answer: followed, interjected into, stopped, and put into the path when it is done. */
export function useAnswer({ treeId, nodeId, handle, onFollow }: AnswerInput) {
  const words = useWords().talk
  const { path } = handle
  const [runId, setRunId] = useState<string | null>(null)
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set())
  const [acceptedQuestion, setAcceptedQuestion] = useState<string | null>(null)
  const [steers, setSteers] = useState<readonly WaitingSteer[]>([])
  const [sending, setSending] = useState(false)
  const [stopping, setStopping] = useState(false)
  const live = useLiveRun(runId, (endedId, state) => void finish(endedId, state))

  // A run that was going on when the page was opened, or was begun on another device, is joined.
  useEffect(() => {
    const found = path?.liveRunId ?? null
    if (found !== null && !ended.has(found)) setRunId(found)
  }, [path, ended])

  const follow = (accepted: RunAccepted) => {
    if (accepted.newer_head) toast({ text: words.newerHead })
    setAcceptedQuestion(accepted.question_id)
    setSteers([])
    setStopping(false)
    setRunId(accepted.run_id)
    invalidate('trees:', `outline:${treeId}`)
    if (nodeId !== null) navigate(paths.tree(treeId) + window.location.search, { replace: true })
    onFollow()
  }

  const finish = async (endedId: string, state: LiveState) => {
    const used = new Set(state.parts.map((part) => (part.kind === 'steer' && part.used ? part.commandId : null)))
    const unused = steers.filter((steer) => !used.has(steer.commandId))
    if (unused.length > 0) {
      restoreText(treeId, unused.map((steer) => steer.text).join('\n'))
      toast({ text: words.steerTooLate })
    }
    setEnded((before) => new Set(before).add(endedId))
    await handle.reloadEnd()
    invalidate('trees:', `outline:${treeId}`, `runs:of:${treeId}`, `run:${endedId}`)
    setRunId((current) => (current === endedId ? null : current))
    setAcceptedQuestion(null)
    setStopping(false)
    setSteers([])
  }

  /** A conversation without a name takes that of its first question; failing to is no reason to trouble anybody. */
  const nameTree = (question: string) => {
    const title = titleOf(question)
    if (path?.tree.title !== '' || title === '') return
    treeApi.rename(treeId, title).then(
      (tree) => {
        handle.setTree(tree)
        invalidate('trees:')
      },
      () => undefined, // it stays unnamed, and can be named by hand
    )
  }

  const ask = async (draft: Draft) => {
    const last = path?.nodes.at(-1)
    const accepted = await treeApi.ask(treeId, {
      text: draft.text,
      citations: draft.citations.map(({ node_id, from, to }) => ({ node_id, from, to })),
      ...(path === null ? {} : { revision: path.tree.revision }),
      // What is answered is what the reader sees last, whatever happened elsewhere meanwhile (T3).
      ...(last === undefined ? {} : { parent_id: last.id }),
    })
    const question: NodeView = accepted.question ?? (await nodeApi.read(accepted.question_id))
    handle.append(question)
    nameTree(draft.text)
    follow(accepted)
  }

  const steer = async (liveRunId: string, text: string) => {
    const accepted = await runApi.steer(liveRunId, text)
    setSteers((before) => [...before, { commandId: accepted.command_id, text }])
  }

  /** Sends a draft as a question, or as an interjection while an answer is made; false = it was refused, and why was said. */
  const send = async (draft: Draft): Promise<boolean> => {
    setSending(true)
    try {
      if (live === null) await ask(draft)
      else await steer(live.state.runId, draft.text)
      return true
    } catch (problem) {
      toastProblem(problem)
      void handle.reload()
      return false
    } finally {
      setSending(false)
    }
  }

  const stop = () => {
    if (live === null) return
    setStopping(true)
    runApi.cancel(live.state.runId).catch((problem: unknown) => {
      setStopping(false)
      toastProblem(problem)
    })
  }

  const received = new Set(live?.state.parts.map((part) => (part.kind === 'steer' ? part.commandId : null)))
  return {
    live,
    /** The question that is being answered, as soon as it is known. */
    questionId: live === null ? null : (live.state.questionId ?? acceptedQuestion ?? questionOf(path?.nodes ?? [], live.state.runId)),
    waitingSteers: steers.filter((one) => !received.has(one.commandId)),
    mode: modeOf(sending, live?.state.phase ?? null),
    stopping,
    follow,
    send,
    stop,
  }
}

/** Where a joined run answers: its sprout stands below that question. */
function questionOf(nodes: readonly NodeView[], runId: string): string | null {
  return nodes.find((node) => !node.sealed && node.run_id === runId)?.parent_id ?? null
}

function modeOf(sending: boolean, phase: LiveState['phase'] | null): ComposerMode {
  if (sending || phase === 'ended') return 'sending'
  if (phase === null) return 'ask'
  return phase === 'queued' ? 'queued' : phase === 'suspended' ? 'waiting' : 'steer'
}
