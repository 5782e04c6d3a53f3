import type { GrantView, ToolView } from '#contracts'
import { actionApi } from '../../api/endpoints.ts'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge, Loading } from '../../parts/small.tsx'
import { Link, paths } from '../../routing/router.tsx'
import { useResource } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { characterDraft, characterGrant, isExactMeaningful, judgedClass, toggled } from './grant-draft.ts'
import { ExactNames, GrantOption, ModeChoice, SaveGrant } from './grant-parts.tsx'
import { useGrant, useGrantEditor } from './use-grant-editor.ts'

export function useTools() {
  return useResource('tools', actionApi.tools)
}

/** Which tools a character has, and how it may use them. */
export function CharacterGrant({ characterId }: { characterId: string }) {
  const words = useWords().actions.grant
  const tools = useTools()
  const own = useGrant({ scope: 'character', id: characterId })
  const owner = useGrant({ scope: 'owner' })
  const broken = [tools, own, owner].find((resource) => resource.data === undefined && resource.problem !== null)
  return (
    <section data-testid={testIds.characterGrant}>
      <h2>{words.title}</h2>
      <p className="faint">{words.text}</p>
      {tools.data !== undefined && own.data !== undefined && owner.data !== undefined ? (
        <Form characterId={characterId} tools={tools.data.items} grant={own.data} owner={owner.data} />
      ) : broken === undefined ? (
        <Loading />
      ) : (
        <ProblemNote problem={broken.problem} onRetry={broken.reload} />
      )}
    </section>
  )
}

function Form({ characterId, tools, grant, owner }: { characterId: string; tools: ToolView[]; grant: GrantView; owner: GrantView }) {
  const words = useWords().actions
  const editor = useGrantEditor({
    place: { scope: 'character', id: characterId },
    grant,
    toDraft: (given) => characterDraft(given, owner.exact ?? []),
    toGrant: (draft, before) => characterGrant(draft, before, tools),
  })
  const { draft, change } = editor
  // One that was taken away just now stays in sight until that is saved.
  const unlisted = [...new Set([...(grant.tools ?? []), ...draft.tools])].filter((name) => !tools.some((tool) => tool.name === name))
  const chosen = tools.filter((tool) => draft.tools.includes(tool.name))
  const lacking = [...new Set(chosen.map(judgedClass))].filter((one) => !owner.classes.includes(one))
  const exactNames = [...chosen.filter(isExactMeaningful).map(({ name }) => name), ...draft.exact.filter((name) => unlisted.includes(name))]
  return (
    <div className="grant">
      <OwnerNote owner={owner} lacking={lacking.map((one) => words.classes[one])} />
      <div>
        <h3>{words.grant.tools}</h3>
        {tools.length + unlisted.length === 0 && <p className="faint">{words.grant.noTools}</p>}
        <ul className="grant-list">
          {tools.map((tool) => (
            <ToolOption
              key={tool.name}
              tool={tool}
              checked={draft.tools.includes(tool.name)}
              onChange={() => change({ tools: toggled(draft.tools, tool.name) })}
            />
          ))}
          {unlisted.map((name) => (
            <GrantOption
              key={name}
              testId={testIds.grantTool}
              name={name}
              checked={draft.tools.includes(name)}
              onChange={() => change({ tools: toggled(draft.tools, name) })}
              head={
                <>
                  <code>{name}</code>
                  <Badge tone="amber">{words.grant.notListed}</Badge>
                </>
              }
            />
          ))}
        </ul>
      </div>
      <ModeChoice value={draft.mode} onChange={(mode) => change({ mode })} />
      <ExactNames
        names={exactNames}
        chosen={draft.exact.filter((name) => draft.tools.includes(name))}
        onToggle={(name) => change({ exact: toggled(draft.exact, name) })}
        noteOf={(name) => (owner.exact?.includes(name) === true ? null : words.grant.exactNeedsOwner)}
      />
      <SaveGrant editor={editor} />
    </div>
  )
}

/** What the owner's own grant takes away from what is chosen here. */
function OwnerNote({ owner, lacking }: { owner: GrantView; lacking: readonly string[] }) {
  const words = useWords().actions.grant
  const text = owner.version === 0 ? words.ownerNothing : lacking.length > 0 ? words.ownerLacks(lacking.join(', ')) : null
  if (text === null) return null
  return (
    <p className="notice notice-amber">
      {text} <Link to={paths.settings}>{words.toOwner}</Link>
    </p>
  )
}

function ToolOption({ tool, checked, onChange }: { tool: ToolView; checked: boolean; onChange: () => void }) {
  const words = useWords().actions
  const usable = tool.accepted && !tool.missing
  return (
    <GrantOption
      testId={testIds.grantTool}
      name={tool.name}
      checked={checked}
      // One that cannot be used is not given; one that was given can still be taken away.
      disabled={!usable && !checked}
      onChange={onChange}
      head={
        <>
          <code>{tool.name}</code>
          <Badge tone={isExactMeaningful(tool) ? 'amber' : 'plain'} title={words.classTexts[judgedClass(tool)]}>
            {words.classes[judgedClass(tool)]}
          </Badge>
          {!tool.accepted && <Badge tone="amber">{words.grant.notAccepted}</Badge>}
          {tool.missing && <Badge tone="amber">{words.grant.gone}</Badge>}
          {tool.source.name !== null && <span className="faint">{tool.source.name}</span>}
          {tool.trust === 'untrusted' && <span className="faint">{words.grant.strangerWords}</span>}
        </>
      }
    >
      {tool.description} {tool.egress === 'free' && words.grant.freeEgress}
    </GrantOption>
  )
}
