import { useEffect, useEffectEvent } from 'react'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { drawerFaceOf, Link, paths, usePlace } from '../../routing/router.tsx'
import { invalidate } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { setShownRun } from '../actions/data.ts'
import { useCharacter } from '../characters/data.ts'
import { closeDrawer } from '../frame/drawer.tsx'
import { CitePopover } from './cite-popover.tsx'
import { Composer } from './composer.tsx'
import { ConversationDialogs } from './conversation-dialogs.tsx'
import { ConversationHead } from './conversation-head.tsx'
import { LiveRegion } from './live-message.tsx'
import { LiveNotices } from './live-notices.tsx'
import { MessageList } from './message-list.tsx'
import { useAnswer } from './use-answer.ts'
import { useCommands } from './use-commands.ts'
import { useConversationKeys } from './use-conversation-keys.ts'
import { usePath } from './use-path.ts'
import { useReadingPlace } from './use-scroll.ts'

/** The middle of the page: the path as text, the answer as it is made, and the place to write. */
export function Conversation({ treeId, nodeId }: { treeId: string; nodeId: string | null }) {
  const words = useWords()
  const face = drawerFaceOf(usePlace().query)
  const handle = usePath(treeId, nodeId)
  const { path } = handle
  const characterId = path?.tree.character_ids[0] ?? null
  const character = useCharacter(characterId).data ?? null
  const name = character?.name ?? '…'
  const place = useReadingPlace(path)
  const answer = useAnswer({ treeId, nodeId, handle, onFollow: place.toEnd })
  const { live } = answer
  const acts = useCommands({ treeId, characterId, characterName: name, handle, onRun: answer.follow })
  const busy = acts.busy || live !== null

  const pointAt = useEffectEvent(() => {
    if (nodeId !== null) place.showMessage(nodeId)
  })
  const nodes = path?.nodes ?? []
  const pointedIsShown = nodeId !== null && nodes.some((node) => node.id === nodeId)
  useEffect(() => {
    if (pointedIsShown) pointAt()
  }, [nodeId, pointedIsShown])

  // What hangs below the question that is being answered gives way to the new answer.
  const cutAt = answer.questionId === null ? -1 : nodes.findIndex((node) => node.id === answer.questionId)
  const shown = cutAt === -1 ? nodes : nodes.slice(0, cutAt + 1)
  const replaced = cutAt === -1 ? undefined : nodes[cutAt + 1]
  const liveSiblings = replaced?.kind === 'candidate' ? replaced.sibling_ids.filter((id) => id !== live?.state.candidateId).length : 0
  const isElsewhere = answer.questionId !== null && cutAt === -1

  const inView = live === null || isElsewhere ? null : live.state.runId
  useEffect(() => {
    setShownRun(inView)
    return () => setShownRun(null)
  }, [inView])

  useConversationKeys({
    shown,
    busy,
    commands: acts.commands,
    onEscape: () => {
      if (live !== null) answer.stop()
      else if (face !== null) closeDrawer()
      else return false
      return true
    },
  })

  if (path === null) {
    return (
      <div className="page">
        {handle.problem === null ? <Loading /> : <ProblemNote problem={handle.problem} onRetry={() => void handle.reload()} />}
      </div>
    )
  }
  const renamed = async () => {
    invalidate('trees:')
    await handle.reloadEnd()
  }
  return (
    <div className="talk" data-testid={testIds.conversation} data-tree-id={treeId}>
      <ConversationHead tree={path.tree} character={character} face={face} onRenamed={renamed} />
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
          onStale={handle.reloadEnd}
          live={isElsewhere ? null : live}
          liveSiblings={liveSiblings}
          waitingSteers={answer.waitingSteers}
          characterName={name}
          commands={acts.commands}
          editingId={acts.editingId}
          freshSealId={acts.freshSealId}
          pointedId={nodeId}
          busy={busy}
        />
      </div>
      <div className="talk-foot">
        {place.away && live?.state.phase === 'running' && (
          <Button icon="down" className="to-end" onClick={place.toEnd}>
            {words.talk.newWords}
          </Button>
        )}
        {place.away && inView !== null && live?.state.phase === 'suspended' && (
          <Button icon="down" className="to-end" onClick={place.toEnd}>
            {words.actions.questionBelow}
          </Button>
        )}
        {live !== null && (
          <LiveNotices
            live={live}
            treeId={treeId}
            name={name}
            elsewhereId={isElsewhere ? answer.questionId : null}
            leaving={answer.stopping}
            onLeave={answer.stop}
          />
        )}
        {handle.problem !== null && <ProblemNote problem={handle.problem} onRetry={() => void handle.reload()} />}
        <Composer treeId={treeId} name={name} mode={answer.mode} stopping={answer.stopping} onSend={answer.send} onStop={answer.stop} />
      </div>
      <LiveRegion live={live} speaker={name} />
      <CitePopover treeId={treeId} nodes={shown} />
      <ConversationDialogs asked={acts.asked} setAsked={acts.setAsked} confirm={acts.confirmAsked} />
    </div>
  )
}
