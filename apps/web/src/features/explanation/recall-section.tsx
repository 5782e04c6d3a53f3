import { memoryApi } from '../../api/endpoints.ts'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge } from '../../parts/small.tsx'
import { useResource } from '../../store/resource.ts'
import { languageOfText } from '../../words/text-language.ts'
import { useFormat, useWords } from '../../words/words.ts'

/** Which memories came into question for the answer: rank and score of each leg, and which limit cut what. */
export function RecallSection({ runId, auditId }: { runId: string; auditId: string | null }) {
  const words = useWords().why
  const format = useFormat()
  const recalls = useResource(auditId === null ? null : `recalls:${runId}`, () => memoryApi.recalls({ run_id: runId, limit: 20 }))
  const audit = recalls.data?.items.find((candidate) => candidate.id === auditId)
  const leg = (rank: number | null, score: number | null) => (rank === null || score === null ? '–' : `#${rank} ${format.decimal(score)}`)
  return (
    <section>
      <h3>{words.recall}</h3>
      {recalls.problem !== null && <ProblemNote problem={recalls.problem} onRetry={recalls.reload} />}
      {audit === undefined || audit.hits.length === 0 ? (
        <p className="faint">{words.recallNone}</p>
      ) : (
        <>
          <p className="faint">
            {words.recallText(audit.embedder)} {words.vectorLeg[audit.vector_leg]}
          </p>
          <ul className="recall-hits">
            {audit.hits.map((hit) => (
              <li key={hit.memory_id} className={hit.cut_by === null ? undefined : 'recall-cut'}>
                <p lang={languageOfText(hit.text ?? '')}>{hit.text ?? words.erased}</p>
                <p className="faint recall-facts">
                  {hit.cut_by === null ? <Badge tone="indigo">{words.given}</Badge> : <Badge>{words.cut[hit.cut_by]}</Badge>}
                  <span>{words.score(format.decimal(hit.score))}</span>
                  <span>{words.legs(leg(hit.text_rank, hit.text_score), leg(hit.vector_rank, hit.vector_score))}</span>
                  <span>{words.vitality(format.decimal(hit.vitality))}</span>
                </p>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}
