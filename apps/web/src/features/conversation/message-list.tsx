import { useEffect, useEffectEvent, useRef } from 'react'
import type { RefObject } from 'react'
import type { NodeView, RunView, TreeView } from '#contracts'
import { request } from '../../api/client.ts'
import type { Page } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/small.tsx'
import { useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import { BusyContext } from './busy.ts'
import { endingText } from './ending-text.ts'
import { LiveMessage } from './live-message.tsx'
import type { WaitingSteer } from './live-message.tsx'
import { Message } from './message.tsx'
import type { MessageCommands } from './use-commands.ts'
import type { LiveRun } from './use-live-run.ts'

/** So many of the last messages have their actions ready without being pointed at. */
const nearMessages = 24

type MessageListProps = {
  contentRef: RefObject<HTMLDivElement | null>
  tree: TreeView
  nodes: readonly NodeView[]
  before: string | null
  loadingEarlier: boolean
  onEarlier: () => Promise<void>
  /** The end of the path is older than what is known of its run: it is read again. */
  onStale: () => Promise<void>
  live: LiveRun | null
  /** How many answers the question has that is being answered again. */
  liveSiblings: number
  waitingSteers: readonly WaitingSteer[]
  characterName: string
  commands: MessageCommands
  editingId: string | null
  freshSealId: string | null
  pointedId: string | null
  busy: boolean
}

/** The path as text, oldest first; scrolling up reads what came before. */
export function MessageList(props: MessageListProps) {
  const { tree, nodes, live, characterName, commands } = props
  const words = useWords()
  const last = nodes.at(-1)
  return (
    <div className="talk-content" ref={props.contentRef} data-busy={props.busy}>
      {props.before === null ? (
        nodes.length > 0 && <p className="beginning">{words.talk.beginning}</p>
      ) : (
        <Earlier loading={props.loadingEarlier} onEarlier={props.onEarlier} />
      )}
      {nodes.length === 0 && live === null && <Empty title={words.talk.emptyTitle} text={words.talk.emptyText} />}
      <BusyContext value={props.busy}>
        {nodes.map((node, index) => (
          <Message
            key={node.id}
            node={node}
            speaker={speakerOf(node, words.talk, characterName)}
            commands={commands}
            canRegenerate={canRegenerate(node, nodes[index - 1], tree, node === last)}
            editing={props.editingId === node.id}
            fresh={props.freshSealId === node.id}
            pointed={props.pointedId === node.id}
            near={index >= nodes.length - nearMessages}
          />
        ))}
      </BusyContext>
      {live !== null && live.state.phase !== 'queued' && (
        <LiveMessage live={live} speaker={characterName} waiting={props.waitingSteers} siblings={props.liveSiblings} />
      )}
      {live === null && last?.kind === 'question' && (
        <Unanswered tree={tree} question={last} onAgain={() => commands.regenerate(last)} onStale={props.onStale} />
      )}
    </div>
  )
}

function speakerOf(node: NodeView, words: { you: string; narrator: string }, characterName: string): string {
  if (node.role === 'narrator') return words.narrator
  if (node.kind === 'question') return node.speaker_name ?? words.you
  return node.speaker_name ?? characterName
}

/** An answer to a question can be made again; a greeting answers nothing. A question alone offers it while it has no answer. */
function canRegenerate(node: NodeView, before: NodeView | undefined, tree: TreeView, isLast: boolean): boolean {
  if (node.deleted) return false
  if (node.kind === 'question') return isLast
  if (node.parent_id === null || node.parent_id === tree.root_node_id) return false
  return before === undefined || before.kind === 'question'
}

function Earlier({ loading, onEarlier }: { loading: boolean; onEarlier: () => Promise<void> }) {
  const words = useWords()
  const edge = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = edge.current
    if (element === null || loading) return
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) void onEarlier()
      },
      { root: element.closest('.talk-scroll'), rootMargin: '600px 0px 0px 0px' },
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [loading, onEarlier])
  return (
    <div ref={edge} className="earlier">
      <Button look="quiet" busy={loading} onClick={() => void onEarlier()}>
        {loading ? words.common.loading : words.talk.earlier}
      </Button>
    </div>
  )
}

/** A question whose run ended before a word was kept: says why, and offers to ask again. */
function Unanswered({
  tree,
  question,
  onAgain,
  onStale,
}: {
  tree: TreeView
  question: NodeView
  onAgain: () => void
  onStale: () => Promise<void>
}) {
  const words = useWords()
  const runs = useResource(`runs:of:${tree.id}`, () => request<Page<RunView>>('/v1/runs', { query: { tree_id: tree.id, limit: 20 } }))
  const run = runs.data?.items.find((candidate) => candidate.question_id === question.id)
  // A run that ended while the path was being read stands in neither as living nor with its answer.
  const endedId = run?.ended_at == null ? null : run.id
  const readAgain = useEffectEvent(() => void onStale())
  useEffect(() => {
    if (endedId !== null) readAgain()
  }, [endedId])
  const reason = run === undefined ? null : endingText(words, run.state, run.reason)
  if (run !== undefined && (run.state === 'running' || run.state === 'queued' || run.state === 'suspended')) return null
  return (
    <div className="unanswered" role="status">
      <span>{reason ?? words.talk.empty}</span>
      <Button look="quiet" onClick={onAgain}>
        {words.talk.askAgain}
      </Button>
    </div>
  )
}
