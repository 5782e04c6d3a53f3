import { useState } from 'react'
import { adminApi } from '../../api/endpoints.ts'
import { useQueryField } from '../../routing/router.tsx'
import { useFormat, useWords } from '../../words/words.ts'
import { PageTable } from './page-list.tsx'
import { usePages } from './use-pages.ts'

const pageSize = 100

/** The log itself, newest first. */
export function EventsView() {
  const words = useWords().admin
  const format = useFormat()
  const [stream, setStream] = useQueryField('stream')
  const [type, setType] = useQueryField('type')
  const [run, setRun] = useQueryField('run')
  const query = { stream, type, run_id: run }
  const pages = usePages(JSON.stringify(query), async (cursor) => {
    const page = await adminApi.events({ ...query, limit: pageSize, before: cursor })
    const last = page.items.at(-1)
    // The log is paged by position; a full page means that there may be more.
    return {
      items: page.items,
      next_cursor: page.next_cursor ?? (page.items.length === pageSize && last !== undefined ? String(last.position) : null),
    }
  })
  return (
    <section>
      <div className="filters">
        <TextFilter key={`stream ${stream ?? ''}`} label={words.filterStream} value={stream} onChange={setStream} />
        <TextFilter key={`type ${type ?? ''}`} label={words.filterType} value={type} onChange={setType} />
        <TextFilter key={`run ${run ?? ''}`} label={words.filterRun} value={run} onChange={setRun} />
      </div>
      <PageTable
        pages={pages}
        head={[words.eventAt, words.eventType, words.stream, words.seq, words.actor, words.visibility, words.payload]}
        empty={<p className="faint">{words.noEvents}</p>}
      >
        {(events) =>
          events.map((event) => (
            <tr key={event.position}>
              <td>{format.clock(event.at)}</td>
              <td>
                <code>{event.type}</code>
              </td>
              <td>
                <button type="button" className="link-button" title={event.stream} onClick={() => setStream(event.stream)}>
                  <code>{shortStream(event.stream)}</code>
                </button>
              </td>
              <td className="cell-number">{event.seq}</td>
              <td>{event.actor}</td>
              <td>{event.visibility}</td>
              <td>
                <details className="payload">
                  <summary>
                    <code>{JSON.stringify(event.payload).slice(0, 60)}</code>
                  </summary>
                  <pre>{JSON.stringify(event.payload, null, 2)}</pre>
                </details>
              </td>
            </tr>
          ))
        }
      </PageTable>
    </section>
  )
}

/** `run:0196…-4c2f` as `run:…4c2f`: the end of an id tells it apart. */
function shortStream(stream: string): string {
  const [kind, id] = stream.split(':')
  return id === undefined || id.length <= 12 ? stream : `${kind}:…${id.slice(-8)}`
}

/** Applies when the field is left or Enter is pressed, so that half a word asks for nothing. */
function TextFilter({ label, value, onChange }: { label: string; value: string | null; onChange: (value: string | null) => void }) {
  const [text, setText] = useState(value ?? '')
  const apply = () => onChange(text.trim() === '' ? null : text.trim())
  return (
    <label className="field field-inline">
      <span className="field-label">{label}</span>
      <input
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === 'Enter' && apply()}
      />
    </label>
  )
}
