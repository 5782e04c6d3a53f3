import { useState } from 'react'
import type { EffectView, ReconcileEffect } from '#contracts'
import { actionApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { toast } from '../../parts/toasts.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { ActionFacts } from './action-facts.tsx'
import { actionsChanged } from './data.ts'
import { reasonText } from './reason-text.ts'
import { Arguments } from './untrusted-text.tsx'

/** Something that went out and never answered: a person says what became of it. */
export function OpenOutcome({ effect, children }: { effect: EffectView; children?: React.ReactNode }) {
  const words = useWords().actions
  const format = useFormat()
  const [sending, setSending] = useState<ReconcileEffect['as'] | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  const settle = async (as: ReconcileEffect['as']) => {
    setSending(as)
    setProblem(null)
    try {
      await actionApi.reconcile(effect.id, as)
      toast({ text: words.settled[as] })
    } catch (error) {
      setProblem(error)
    } finally {
      setSending(null)
      actionsChanged()
    }
  }
  return (
    <section className="question" aria-label={words.unknownTitle} data-testid={testIds.openOutcome}>
      <p className="question-title">{words.unknownTitle}</p>
      <p>{words.unknownText}</p>
      <ActionFacts tool={effect.tool} capability={effect.capability} />
      <p className="faint">
        {words.unknownLine(format.moment(effect.created_at))} {effect.code !== null && reasonText(words, effect.code)}
      </p>
      <Arguments text={effect.arguments} />
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="button-row">
        <Button busy={sending === 'done'} disabled={sending !== null} testId={testIds.happened} onClick={() => void settle('done')}>
          {words.happened}
        </Button>
        <Button busy={sending === 'failed'} disabled={sending !== null} testId={testIds.didNotHappen} onClick={() => void settle('failed')}>
          {words.didNotHappen}
        </Button>
      </div>
      {children}
    </section>
  )
}
