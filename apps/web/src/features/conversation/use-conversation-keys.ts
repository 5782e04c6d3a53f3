import type { NodeView } from '#contracts'
import { useKeys } from '../frame/keys.ts'
import type { MessageCommands } from './use-commands.ts'

type KeysInput = { shown: readonly NodeView[]; busy: boolean; commands: MessageCommands; onEscape: () => boolean }

/** Keys of the conversation: they act on the message in focus, else on the last answer. */
export function useConversationKeys({ shown, busy, commands, onEscape }: KeysInput): void {
  const target = (): NodeView | undefined => {
    const selected = document.getSelection()
    const anchor = selected === null || selected.isCollapsed ? null : selected.anchorNode?.parentElement
    const element = document.activeElement?.closest<HTMLElement>('.message') ?? anchor?.closest<HTMLElement>('.message')
    const focused = shown.find((node) => node.id === element?.dataset.nodeId)
    return focused ?? lastAnswer() ?? shown.at(-1)
  }
  const lastAnswer = () => shown.findLast((node) => node.kind === 'candidate' && !node.deleted)
  const on = (needsRest: boolean, action: (node: NodeView) => void) => () => {
    const node = target()
    if (node === undefined || node.deleted || (needsRest && busy)) return false
    action(node)
    return true
  }
  const step = (direction: 1 | -1) =>
    on(true, (focused) => {
      // A message without alternatives leaves the arrows to the last answer.
      const node = focused.sibling_ids.length > 1 ? focused : lastAnswer()
      if (node === undefined) return
      const next = node.sibling_ids[node.sibling_ids.indexOf(node.id) + direction]
      if (next !== undefined) commands.adopt(next)
    })
  useKeys({
    ArrowLeft: step(-1),
    ArrowRight: step(1),
    r: on(true, (node) => commands.regenerate(node)),
    e: on(true, (node) => commands.edit(node)),
    f: on(true, (node) => commands.fork(node)),
    c: on(true, (node) => node.kind === 'candidate' && commands.canonize(node)),
    q: on(false, (node) => commands.cite(node)),
    w: on(false, (node) => node.run_id !== null && commands.explain(node)),
    Escape: () => onEscape(),
  })
}
