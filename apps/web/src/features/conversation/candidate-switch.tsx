import type { NodeView } from '#contracts'
import { IconButton } from '../../parts/button.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useBusy } from './busy.ts'

/** `‹ 2/3 ›`: the answers to one question, or the wordings of one, side by side. */
export function CandidateSwitch({ node, onAdopt }: { node: NodeView; onAdopt: (nodeId: string) => void }) {
  const words = useWords()
  const disabled = useBusy()
  const siblings = node.sibling_ids
  const at = siblings.indexOf(node.id)
  if (siblings.length < 2 || at === -1) return null
  const previous = siblings[at - 1]
  const next = siblings[at + 1]
  const label =
    node.kind === 'candidate' ? words.talk.candidateLabel(at + 1, siblings.length) : words.talk.versionLabel(at + 1, siblings.length)
  return (
    <span className="switch" role="group" aria-label={label}>
      <IconButton
        icon="left"
        label={words.talk.previous}
        testId={testIds.candidatePrev}
        disabled={disabled || previous === undefined}
        onClick={() => previous !== undefined && onAdopt(previous)}
      />
      <span className="switch-count" data-testid={testIds.candidateCount}>
        {words.talk.candidate(at + 1, siblings.length)}
      </span>
      <IconButton
        icon="right"
        label={words.talk.next}
        testId={testIds.candidateNext}
        disabled={disabled || next === undefined}
        onClick={() => next !== undefined && onAdopt(next)}
      />
    </span>
  )
}
