import { useEffect, useState } from 'react'
import type { NodeView } from '#contracts'
import { Icon } from '../../parts/icons.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { addCitation } from './drafts.ts'
import { selectedPassage } from './selection.ts'

type Offer = { x: number; y: number; node: NodeView }

/** Where a passage of a message is selected, a small button beside it offers to cite it. */
export function CitePopover({ treeId, nodes }: { treeId: string; nodes: readonly NodeView[] }) {
  const words = useWords()
  const [offer, setOffer] = useState<Offer | null>(null)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      clearTimeout(timer)
      timer = setTimeout(() => setOffer(offerOf(nodes)), 120)
    }
    document.addEventListener('selectionchange', look)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('selectionchange', look)
    }
  }, [nodes])
  if (offer === null) return null
  const cite = () => {
    const element = document.querySelector(`[data-node-id="${offer.node.id}"]`)
    const passage = element === null ? null : selectedPassage(element, offer.node)
    if (passage !== null) addCitation(treeId, passage)
    document.getSelection()?.removeAllRanges()
    setOffer(null)
    document.querySelector<HTMLTextAreaElement>('[data-composer]')?.focus()
  }
  return (
    <button
      type="button"
      className="cite-popover"
      data-testid={testIds.citeSelection}
      style={{ left: offer.x, top: offer.y }}
      // The selection must live until the press is over.
      onPointerDown={(event) => event.preventDefault()}
      onClick={cite}
    >
      <Icon name="quote" />
      {words.talk.citeSelection}
    </button>
  )
}

function offerOf(nodes: readonly NodeView[]): Offer | null {
  const selection = document.getSelection()
  if (selection === null || selection.isCollapsed || selection.rangeCount === 0) return null
  const anchor = selection.anchorNode instanceof Element ? selection.anchorNode : selection.anchorNode?.parentElement
  const element = anchor?.closest<HTMLElement>('.message[data-node-id]')
  const node = nodes.find((candidate) => candidate.id === element?.dataset.nodeId)
  if (element == null || node === undefined || selectedPassage(element, node) === null) return null
  const box = selection.getRangeAt(0).getBoundingClientRect()
  return { x: Math.min(Math.max(box.left + box.width / 2, 90), window.innerWidth - 90), y: Math.max(box.top - 42, 8), node }
}
