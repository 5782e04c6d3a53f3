import { useEffect, useEffectEvent, useState } from 'react'
import type { NodeView, RunAccepted } from '#contracts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { toast, toastProblem } from '../../parts/toasts.tsx'
import { drawerFaceOf, Link, navigate, paths, usePlace } from '../../routing/router.tsx'
import { nodeApi, runApi, treeApi } from '../../api/endpoints.ts'
import { invalidate } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useCharacter } from '../characters/data.ts'
import { closeDrawer } from '../frame/drawer.tsx'
import { CitePopover } from './cite-popover.tsx'
import { Composer } from './composer.tsx'
import type { ComposerMode } from './composer.tsx'
import { ConversationDialogs } from './conversation-dialogs.tsx'
import { ConversationHead } from './conversation-head.tsx'
import type { Draft } from './drafts.ts'
import { restoreText } from './drafts.ts'
import { LiveRegion } from './live-message.tsx'
import type { WaitingSteer } from './live-message.tsx'
import type { LiveState } from './live-state.ts'
import { MessageList } from './message-list.tsx'
import { QueueLine } from './queue-line.tsx'
import { titleOf } from './title-of.ts'
import { useCommands } from './use-commands.ts'
import { useConversationKeys } from './use-conversation-keys.ts'
import { useLiveRun } from './use-live-run.ts'
import { usePath } from './use-path.ts'
import { useReadingPlace } from './use-scroll.ts'

/** The middle of the page: the path as text, the answer as it is made, and the place to write. */
export function Conversation({ treeId, nodeId }: { treeId: string; nodeId: string | null }) {
  const words = useWords()
  const { query } = usePlace()
  const face = drawerFaceOf(query)
  const handle = usePath(treeId, nodeId)
  const { path } = handle
  const characterId = path?.tree.character_ids[0] ?? null
  const character = useCharacter(characterId).data ?? null
  const name = character?.name ?? '…'

  const [runId, setRunId] = useState<string | null>(null)
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set())
  const [acceptedQuestion, setAcceptedQuestion] = useState<string | null>(null)
  const [steers, setSteers] = useState<readonly WaitingSteer[]>([])
  const [sending, setSending] = useState(false)
  const [stopping, setStopping] = useState(false)

  const live = useLiveRun(runId, (endedId, state) => void finishRun(endedId, state))
  const nodes = path?.nodes ?? []
  const liveQuestion = live?.state.questionId ?? acceptedQuestion
  const cutAt = live === null || liveQuestion === null ? -1 : nodes.findIndex((node) => node.id === liveQuestion)
  const shown = cutAt === -1 ? nodes : nodes.slice(0, cutAt + 1)
  const place = useReadingPlace(path)

  // A run that was going on when the page was opened, or was begun on another device, is joined.
  useEffect(() => {
    const found = path?.liveRunId ?? null
    if (found !== null && !ended.has(found)) setRunId(found)
  }, [path, ended])

  const pointAt = useEffectEvent(() => {
    if (nodeId !== null) place.showMessage(nodeId)
  })
  const pointedIsShown = nodeId !== null && nodes.some((node) => node.id === nodeId)
  useEffect(() => {
    if (pointedIsShown) pointAt()
  }, [nodeId, pointedIsShown])

  const follow = (accepted: RunAccepted) => {
    if (accepted.newer_head) toast({ text: words.talk.newerHead })
    setAcceptedQuestion(accepted.question_id)
    setSteers([])
    setStopping(false)
    setRunId(accepted.run_id)
    invalidate('trees:', `outline:${treeId}`)
    if (nodeId !== null) navigate(paths.tree(treeId) + window.location.search, { replace: true })
    place.toEnd()
  }
  const { commands, editingId, freshSealId, asked, setAsked, confirmAsked, busy } = useCommands({
    treeId,
    characterId,
    characterName: name,
    handle,
    onRun: follow,
  })

  const finishRun = async (endedId: string, state: LiveState) => {
    const unused = steers.filter(
      (steer) => !state.parts.some((part) => part.kind === 'steer' && part.commandId === steer.commandId && part.used),
    )
    if (unused.length > 0) {
      restoreText(treeId, unused.map((steer) => steer.text).join('\n'))
      toast({ text: words.talk.steerTooLate })
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

  const send = async (draft: Draft): Promise<boolean> => {
    setSending(true)
    try {
      if (live !== null) {
        const accepted = await runApi.steer(live.state.runId, draft.text)
        setSteers((before) => [...before, { commandId: accepted.command_id, text: draft.text }])
        return true
      }
      const accepted = await treeApi.ask(treeId, {
        text: draft.text,
        citations: draft.citations.map(({ node_id, from, to }) => ({ node_id, from, to })),
        ...(path === null ? {} : { revision: path.tree.revision }),
        ...(nodes.length === 0 ? {} : { parent_id: nodes.at(-1)?.id }),
      })
      const question: NodeView | null = accepted.question ?? (await nodeApi.read(accepted.question_id))
      handle.append(question)
      nameTree(draft.text)
      follow(accepted)
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

  useConversationKeys({
    shown,
    busy: busy || live !== null,
    commands,
    onEscape: () => (live === null ? (face === null ? false : (closeDrawer(), true)) : (stop(), true)),
  })

  if (path === null)
    return (
      <div className="page">
        {handle.problem === null ? <Loading /> : <ProblemNote problem={handle.problem} onRetry={() => void handle.reload()} />}
      </div>
    )

  const pendingSteers = steers.filter(
    (steer) => live?.state.parts.some((part) => part.kind === 'steer' && part.commandId === steer.commandId) !== true,
  )
  const mode: ComposerMode = sending
    ? 'sending'
    : live === null
      ? 'ask'
      : live.state.phase === 'queued'
        ? 'queued'
        : live.state.phase === 'ended'
          ? 'sending'
          : 'steer'
  const replaced = cutAt === -1 ? undefined : nodes[cutAt + 1]
  const liveSiblings = replaced?.kind === 'candidate' ? replaced.sibling_ids.filter((id) => id !== live?.state.candidateId).length : 0
  const liveIsHere = live !== null && (liveQuestion === null || cutAt !== -1)

  return (
    <div className="talk" data-testid={testIds.conversation} data-tree-id={treeId}>
      <ConversationHead tree={path.tree} character={character} face={face} onRenamed={() => (invalidate('trees:'), handle.reload())} />
      {path.aside && (
        <div className="aside-notice" data-testid={testIds.aside}>
          <span>{words.talk.asideTitle}</span>
          <Link to={paths.tree(treeId)}>{words.talk.asideEnd}</Link>
        </div>
      )}
      <div className="talk-scroll" ref={place.scroller} onScroll={place.remember}>
        <MessageList
          contentRef={place.content}
          tree={path.tree}
          nodes={shown}
          before={path.before}
          loadingEarlier={handle.loadingEarlier}
          onEarlier={handle.loadEarlier}
          live={liveIsHere ? live : null}
          liveSiblings={liveSiblings}
          waitingSteers={pendingSteers}
          characterName={name}
          commands={commands}
          editingId={editingId}
          freshSealId={freshSealId}
          pointedId={nodeId}
          busy={busy || live !== null}
        />
      </div>
      <div className="talk-foot">
        {place.away && live !== null && live.state.phase === 'running' && (
          <Button icon="down" className="to-end" onClick={place.toEnd}>
            {words.talk.newWords}
          </Button>
        )}
        {live !== null && !liveIsHere && liveQuestion !== null && (
          <p className="queue-line">
            {words.talk.liveElsewhere} <Link to={paths.node(treeId, liveQuestion)}>{words.talk.liveElsewhereGo}</Link>
          </p>
        )}
        {live?.state.phase === 'queued' && <QueueLine live={live} treeId={treeId} name={name} leaving={stopping} onLeave={stop} />}
        {live?.reconnecting === true && (
          <p className="queue-line" role="status" data-testid={testIds.reconnecting}>
            <span className="queue-dot" aria-hidden="true" />
            {words.talk.reconnecting}
          </p>
        )}
        {live?.broken === true && <p className="queue-line">{words.talk.sequenceBroken}</p>}
        {handle.problem !== null && <ProblemNote problem={handle.problem} onRetry={() => void handle.reload()} />}
        <Composer treeId={treeId} name={name} mode={mode} stopping={stopping} onSend={send} onStop={stop} />
      </div>
      <LiveRegion live={live} speaker={name} />
      <CitePopover treeId={treeId} nodes={shown} />
      <ConversationDialogs asked={asked} setAsked={setAsked} confirm={confirmAsked} />
    </div>
  )
}
