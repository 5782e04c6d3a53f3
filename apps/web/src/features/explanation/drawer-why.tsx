import { useState } from 'react'
import { runApi, treeApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Empty, Loading } from '../../parts/small.tsx'
import { toastProblem } from '../../parts/toasts.tsx'
import { addressWith, navigate, usePlace } from '../../routing/router.tsx'
import { useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import { ExplanationView } from './explanation-view.tsx'

const lookBack = 20

/** "Why did it say that": the explanation of the run that the address names. */
export function DrawerWhy({ treeId }: { treeId: string }) {
  const words = useWords().why
  const runId = usePlace().query.get('run')
  if (runId !== null) return <RunExplanation key={runId} runId={runId} />
  const explainLast = () => {
    treeApi
      .path(treeId, { limit: lookBack })
      .then(({ nodes }) => {
        const last = nodes.findLast((node) => node.kind === 'candidate' && node.run_id !== null)
        if (last !== undefined) navigate(addressWith({ run: last.run_id }), { replace: true })
      })
      .catch(toastProblem)
  }
  return (
    <Empty title={words.emptyTitle} text={words.emptyText}>
      <Button onClick={explainLast}>{words.lastAnswer}</Button>
    </Empty>
  )
}

function RunExplanation({ runId }: { runId: string }) {
  const [turn, setTurn] = useState<number | undefined>(undefined)
  const explanation = useResource(`explanation:${runId}:${turn ?? 'last'}`, () => runApi.explanation(runId, turn))
  if (explanation.data === undefined)
    return explanation.problem === null ? <Loading /> : <ProblemNote problem={explanation.problem} onRetry={explanation.reload} />
  return <ExplanationView explanation={explanation.data} onTurn={setTurn} />
}
