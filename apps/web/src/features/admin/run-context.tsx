import { useState } from 'react'
import type { ProjectedContext } from '#contracts'
import { adminApi } from '../../api/endpoints.ts'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'

/** The request of a run as it was sent, and whether it is rebuilt from the log byte for byte. */
export function RunContext({ runId }: { runId: string }) {
  const words = useWords().admin
  const context = useResource(`context:${runId}`, () => adminApi.context(runId))
  const [replayed, setReplayed] = useState<ProjectedContext | null>(null)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const replay = () => {
    setBusy(true)
    setProblem(null)
    adminApi
      .replay(runId)
      .then(setReplayed, setProblem)
      .finally(() => setBusy(false))
  }
  if (context.data === undefined) {
    if (context.problem === null) return <Loading />
    if (context.problem instanceof ApiProblem && context.problem.code === 'not_found') return <p className="faint">{words.contextNone}</p>
    return <ProblemNote problem={context.problem} onRetry={context.reload} />
  }
  return (
    <div className="run-context">
      <div className="section-head">
        <h2>{words.context}</h2>
        <Button busy={busy} testId={testIds.replay} onClick={replay} title={words.replayText}>
          {words.replay}
        </Button>
      </div>
      <p className="faint">
        {words.contextText} <code>{runId}</code>
      </p>
      <Verdict context={replayed ?? context.data} replayed={replayed !== null} />
      {problem !== null && <ProblemNote problem={problem} />}
      {context.data.body === null ? <p className="faint">{words.contextNone}</p> : <RawBody body={context.data.body} />}
    </div>
  )
}

function Verdict({ context, replayed }: { context: ProjectedContext; replayed: boolean }) {
  const words = useWords().admin
  return (
    <dl className="digests" data-testid={testIds.replayResult} data-result={context.result} data-replayed={replayed}>
      <div>
        <dt>{words.replay}</dt>
        <dd className={`rebuilt rebuilt-${context.result}`}>{words.replayResult[context.result]}</dd>
      </div>
      <div>
        <dt>{words.recordedDigest}</dt>
        <dd>
          <code>{context.request_digest}</code>
        </dd>
      </div>
      <div>
        <dt>{words.rebuiltDigest}</dt>
        <dd>
          <code>{context.rebuilt_digest ?? '–'}</code>
        </dd>
      </div>
    </dl>
  )
}

/** The body byte for byte; beside it the same laid out for reading. */
function RawBody({ body }: { body: string }) {
  const [pretty, setPretty] = useState(false)
  const words = useWords().admin
  return (
    <>
      <pre className="raw-body" data-testid={testIds.adminContext} tabIndex={0}>
        {pretty ? indented(body) : body}
      </pre>
      <Button look="quiet" onClick={() => setPretty(!pretty)}>
        {pretty ? words.asSent : words.laidOut}
      </Button>
    </>
  )
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body // what was sent need not be JSON to be shown
  }
}
