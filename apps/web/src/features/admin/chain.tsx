import { useState } from 'react'
import type { VerifyReport } from '#contracts'
import { adminApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'

/** Walks every chain when asked, and reports. */
export function ChainView() {
  const words = useWords().admin
  const [report, setReport] = useState<VerifyReport | null>(null)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const verify = () => {
    setBusy(true)
    setProblem(null)
    adminApi
      .verify()
      .then(setReport, setProblem)
      .finally(() => setBusy(false))
  }
  return (
    <section aria-label={words.chain}>
      <Button title={words.verifyText} busy={busy} testId={testIds.verify} onClick={verify}>
        {busy ? words.verifying : words.verify}
      </Button>
      {problem !== null && <ProblemNote problem={problem} onRetry={verify} />}
      {report !== null && <Report report={report} />}
    </section>
  )
}

function Report({ report }: { report: VerifyReport }) {
  const words = useWords().admin
  const format = useFormat()
  return (
    <div className="verify-report" role="status" data-testid={testIds.verifyReport} data-intact={report.intact}>
      <p className={report.intact ? 'rebuilt rebuilt-identical' : 'rebuilt rebuilt-different'}>
        {report.intact ? `${words.verifyIntact} ✓` : `${words.verifyBroken(report.faults.length)} ✗`}
      </p>
      <p className="faint">
        {words.verifyReport(
          format.number(report.streams),
          format.number(report.events),
          format.number(report.anchors.count),
          format.duration(report.milliseconds),
        )}
      </p>
      {report.faults.length > 0 && (
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{words.stream}</th>
              <th scope="col">{words.seq}</th>
              <th scope="col">{words.fault}</th>
            </tr>
          </thead>
          <tbody>
            {report.faults.map((fault) => (
              <tr key={`${fault.stream} ${fault.seq} ${fault.fault}`}>
                <td>
                  <code>{fault.stream}</code>
                </td>
                <td>{fault.seq}</td>
                <td>{words.faults[fault.fault]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}
