import type { GrantView, ToolView } from '#contracts'
import { CapabilityClass as classes } from '../../choices.ts'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useTools } from './character-grant.tsx'
import { isExactMeaningful, ownerDraft, ownerGrant, toggled } from './grant-draft.ts'
import { ExactNames, GrantOption, ModeChoice, SaveGrant } from './grant-parts.tsx'
import { useGrant, useGrantEditor } from './use-grant-editor.ts'

/** The most that any character of this owner may do. */
export function OwnerGrant() {
  const words = useWords().actions.grant
  const grant = useGrant({ scope: 'owner' })
  const tools = useTools()
  const broken = [grant, tools].find((resource) => resource.data === undefined && resource.problem !== null)
  return (
    <section data-testid={testIds.ownerGrant}>
      <h2>{words.ownerTitle}</h2>
      <p className="faint">{words.ownerText}</p>
      {grant.data !== undefined && tools.data !== undefined ? (
        <Form grant={grant.data} tools={tools.data.items} />
      ) : broken === undefined ? (
        <Loading />
      ) : (
        <ProblemNote problem={broken.problem} onRetry={broken.reload} />
      )}
    </section>
  )
}

function Form({ grant, tools }: { grant: GrantView; tools: ToolView[] }) {
  const words = useWords().actions
  const editor = useGrantEditor({ place: { scope: 'owner' }, grant, toDraft: ownerDraft, toGrant: ownerGrant })
  const { draft, change } = editor
  const nameable = tools.filter((tool) => tool.accepted && isExactMeaningful(tool)).map(({ name }) => name)
  // One that was taken away just now stays in sight until that is saved.
  const names = [...new Set([...nameable, ...(grant.exact ?? []), ...draft.exact])]
  return (
    <div className="grant">
      {grant.version === 0 && <p className="notice notice-amber">{words.grant.ownerNothing}</p>}
      <div>
        <h3>{words.grant.ownerClasses}</h3>
        <ul className="grant-list">
          {classes.map((one) => (
            <GrantOption
              key={one}
              testId={testIds.grantClass}
              name={one}
              checked={draft.classes.includes(one)}
              onChange={() => change({ classes: toggled(draft.classes, one) })}
              head={words.classes[one]}
            >
              {words.classTexts[one]}
            </GrantOption>
          ))}
        </ul>
        {grant.tools !== null && <p className="faint">{words.grant.ownerByName(grant.tools.length)}</p>}
      </div>
      <ModeChoice value={draft.mode} onChange={(mode) => change({ mode })} />
      <ExactNames names={names} chosen={draft.exact} onToggle={(name) => change({ exact: toggled(draft.exact, name) })} />
      <SaveGrant editor={editor} />
    </div>
  )
}
