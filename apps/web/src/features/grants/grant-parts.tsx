import type { GrantView, PermissionMode } from '#contracts'
import { PermissionMode as modes } from '../../choices.ts'
import { Button, Choice } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import type { GrantEditor } from './use-grant-editor.ts'

/** One thing that can be granted: a box, what it is called, and what that means. */
export function GrantOption(props: {
  testId: string
  name: string
  checked: boolean
  disabled?: boolean
  onChange: () => void
  head: React.ReactNode
  children?: React.ReactNode
}) {
  return (
    <li>
      <label className="grant-option">
        <input
          type="checkbox"
          data-testid={props.testId}
          data-name={props.name}
          checked={props.checked}
          disabled={props.disabled}
          onChange={props.onChange}
        />
        <span className="grant-option-head">{props.head}</span>
        {props.children !== undefined && <span className="grant-option-text faint">{props.children}</span>}
      </label>
    </li>
  )
}

export function ModeChoice({ value, onChange }: { value: PermissionMode; onChange: (mode: PermissionMode) => void }) {
  const words = useWords().actions
  return (
    <div>
      <h3>{words.grant.mode}</h3>
      <Choice<PermissionMode>
        label={words.grant.mode}
        value={value}
        onChange={onChange}
        options={modes.map((mode) => ({ value: mode, label: words.modes[mode] }))}
      />
      <p className="faint">{words.modeTexts[value]}</p>
    </div>
  )
}

/** Tools that act without a question, behind a fold and a warning. `note` says what a name still lacks. */
export function ExactNames({
  names,
  chosen,
  onToggle,
  noteOf,
}: {
  names: readonly string[]
  chosen: readonly string[]
  onToggle: (name: string) => void
  noteOf?: (name: string) => string | null
}) {
  const words = useWords().actions.grant
  return (
    <details className="grant-advanced" data-testid={testIds.grantAdvanced}>
      <summary>
        {words.advanced}
        {chosen.length > 0 && <span className="count">{chosen.length}</span>}
      </summary>
      <p className="notice notice-amber">{words.exactWarning}</p>
      {names.length === 0 ? (
        <p className="faint">{words.exactNone}</p>
      ) : (
        <ul className="grant-list">
          {names.map((name) => (
            <GrantOption
              key={name}
              testId={testIds.grantExact}
              name={name}
              checked={chosen.includes(name)}
              onChange={() => onToggle(name)}
              head={<code>{name}</code>}
            >
              {(chosen.includes(name) ? noteOf?.(name) : null) ?? undefined}
            </GrantOption>
          ))}
        </ul>
      )}
    </details>
  )
}

/** Saves; or, where somebody else changed it meanwhile, shows theirs and lets one choose. */
export function SaveGrant({ editor }: { editor: GrantEditor }) {
  const words = useWords().actions.grant
  return (
    <>
      {editor.problem !== null && <ProblemNote problem={editor.problem} />}
      {editor.conflict === null ? (
        <div>
          <Button look="strong" busy={editor.busy} disabled={!editor.changed} testId={testIds.grantSave} onClick={() => void editor.save()}>
            {words.save}
          </Button>
        </div>
      ) : (
        <div className="notice notice-amber" role="alert" data-testid={testIds.problem}>
          <p>{words.conflict}</p>
          <GrantSummary grant={editor.conflict} />
          <div className="button-row">
            <Button onClick={editor.takeTheirs}>{words.takeTheirs}</Button>
            <Button busy={editor.busy} onClick={() => void editor.keepMine()}>
              {words.keepMine}
            </Button>
          </div>
        </div>
      )}
    </>
  )
}

function GrantSummary({ grant }: { grant: GrantView }) {
  const words = useWords().actions
  const listed = (names: readonly string[]) => (names.length === 0 ? words.grant.noneChosen : names.join(' · '))
  return (
    <dl className="action-facts" aria-label={words.grant.conflictNow}>
      <div>
        <dt>{words.grant.mode}</dt>
        <dd>{words.modes[grant.mode]}</dd>
      </div>
      <div>
        <dt>{words.grant.ownerClasses}</dt>
        <dd>{listed(grant.classes.map((one) => words.classes[one]))}</dd>
      </div>
      {grant.tools !== null && (
        <div>
          <dt>{words.grant.tools}</dt>
          <dd>{listed(grant.tools)}</dd>
        </div>
      )}
      {grant.exact !== null && (
        <div>
          <dt>{words.grant.advanced}</dt>
          <dd>{listed(grant.exact)}</dd>
        </div>
      )}
    </dl>
  )
}
