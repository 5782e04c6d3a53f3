import { adminApi } from '../../api/endpoints.ts'
import { When } from '../../parts/small.tsx'
import { useFormat, useWords } from '../../words/words.ts'
import { PageTable } from './page-list.tsx'
import { usePages } from './use-pages.ts'

export function OutboxView() {
  const words = useWords().admin
  const format = useFormat()
  const pages = usePages('outbox', (cursor) => adminApi.outbox(cursor ?? undefined))
  return (
    <section>
      <p>{words.outboxText}</p>
      <PageTable
        pages={pages}
        head={[words.topic, words.due, words.attempts, words.closed, words.outcome, words.lastError]}
        empty={<p className="faint">{words.outboxEmpty}</p>}
      >
        {(rows) =>
          rows.map((row) => (
            <tr key={row.id} title={row.id}>
              <td>
                <code>{row.topic}</code>
              </td>
              <td>
                <When at={row.due_at} />
              </td>
              <td className="cell-number">{format.number(row.attempts)}</td>
              <td>
                {row.closed_at === null ? <span className="run-state run-state-queued">{words.open}</span> : format.clock(row.closed_at)}
              </td>
              <td>{row.outcome ?? '–'}</td>
              <td className="cell-text">{row.last_error ?? '–'}</td>
            </tr>
          ))
        }
      </PageTable>
    </section>
  )
}
