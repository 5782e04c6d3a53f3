import type { AdminRun } from '#contracts'
import { RunState } from '../../choices.ts'
import { adminApi } from '../../api/endpoints.ts'
import { Button, Select } from '../../parts/button.tsx'
import { Empty } from '../../parts/small.tsx'
import { useQueryField } from '../../routing/router.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { endingText } from '../conversation/ending-text.ts'
import { PageTable } from './page-list.tsx'
import { RunContext } from './run-context.tsx'
import { usePages } from './use-pages.ts'

const pageSize = 50

export function RunsView() {
  const words = useWords()
  const [state, setState] = useQueryField('state')
  const [characterId, setCharacter] = useQueryField('character')
  const [openId, setOpen] = useQueryField('run')
  const query = { state, character_id: characterId, limit: pageSize }
  const pages = usePages(JSON.stringify(query), (cursor) => adminApi.runs({ ...query, cursor }))
  // Only whom the list has shown can be chosen: an admin has no list of other owners' characters.
  const known = new Map((pages.items ?? []).map((run) => [run.character_id, run.character_name]))
  if (characterId !== null && !known.has(characterId)) known.set(characterId, characterId)
  const all = { value: '', label: words.common.all }
  return (
    <section>
      <div className="filters">
        <Select
          label={words.admin.state}
          value={state ?? ''}
          onChange={setState}
          options={[all, ...RunState.map((value) => ({ value, label: words.admin.states[value] }))]}
        />
        <Select
          label={words.admin.character}
          value={characterId ?? ''}
          onChange={setCharacter}
          options={[all, ...[...known].map(([value, label]) => ({ value, label }))]}
        />
        <Button look="quiet" icon="refresh" busy={pages.loading} onClick={pages.reload}>
          {words.common.refresh}
        </Button>
      </div>
      {openId !== null && !pages.items?.some((run) => run.id === openId) && <RunContext runId={openId} />}
      <PageTable
        pages={pages}
        head={[
          words.admin.requested,
          words.admin.character,
          words.admin.owner,
          words.admin.tree,
          words.admin.state,
          words.admin.duration,
          words.admin.run,
        ]}
        empty={<Empty title={words.admin.noRuns} text={words.admin.noRunsText} />}
      >
        {(runs) =>
          runs.map((run) => (
            <RunRows key={run.id} run={run} open={run.id === openId} onOpen={() => setOpen(run.id === openId ? null : run.id)} />
          ))
        }
      </PageTable>
    </section>
  )
}

function RunRows({ run, open, onOpen }: { run: AdminRun; open: boolean; onOpen: () => void }) {
  const words = useWords()
  const format = useFormat()
  const took =
    run.started_at !== null && run.ended_at !== null ? new Date(run.ended_at).getTime() - new Date(run.started_at).getTime() : null
  const why = endingText(words, run.state, run.reason) ?? run.reason
  return (
    <>
      <tr data-testid={testIds.adminRun} data-run-id={run.id} data-state={run.state} aria-selected={open}>
        <td>{format.clock(run.requested_at)}</td>
        <td>{run.character_name}</td>
        <td>{run.owner_name}</td>
        <td className="cell-text">{run.tree_title ?? words.admin.kinds[run.kind]}</td>
        <td>
          <span className={`run-state run-state-${run.state}`}>{words.admin.states[run.state]}</span>
          {why !== null && why !== '' && <span className="faint cell-note">{why}</span>}
        </td>
        <td className="cell-number">{took === null ? '–' : format.duration(took)}</td>
        <td>
          <button type="button" className="link-button" aria-expanded={open} onClick={onOpen} title={run.id}>
            <code>{run.id.slice(-8)}</code>
          </button>
        </td>
      </tr>
      {open && (
        <tr className="row-open">
          <td colSpan={7}>
            <RunContext runId={run.id} />
          </td>
        </tr>
      )}
    </>
  )
}
