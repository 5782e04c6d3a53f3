import { ApiProblem } from '../../api/client.ts'
import { ConfirmDialog } from '../../parts/dialog.tsx'
import { useWords } from '../../words/words.ts'
import type { Asked } from './use-commands.ts'

/** The questions asked before a seal is withdrawn or a message is deleted. */
export function ConversationDialogs({
  asked,
  setAsked,
  confirm,
}: {
  asked: Asked | null
  setAsked: (asked: Asked | null) => void
  confirm: (asked: Asked) => Promise<void>
}) {
  const words = useWords().talk
  const common = useWords().common
  if (asked === null) return null
  if (asked.kind === 'withdraw') {
    return (
      <ConfirmDialog
        danger
        title={words.withdrawTitle}
        text={words.withdrawText}
        confirm={words.withdraw}
        onClose={() => setAsked(null)}
        act={() => confirm(asked)}
      />
    )
  }
  return (
    <ConfirmDialog
      key={String(asked.canonical)}
      danger
      title={asked.canonical ? words.deleteCanonTitle : words.deleteTitle}
      text={asked.canonical ? `${words.deleteCanonText} ${words.deleteText}` : words.deleteText}
      confirm={asked.canonical ? words.deleteCanonConfirm : common.delete}
      onClose={() => setAsked(null)}
      act={async () => {
        try {
          await confirm(asked)
        } catch (problem) {
          // It has become canonical meanwhile: the deeper question is asked instead.
          if (problem instanceof ApiProblem && problem.code === 'canonical_node' && !asked.canonical)
            setTimeout(() => setAsked({ ...asked, canonical: true }))
          else throw problem
        }
      }}
    />
  )
}
