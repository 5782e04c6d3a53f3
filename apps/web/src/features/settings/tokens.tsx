import { useState } from 'react'
import type { CreatedToken, TokenView } from '#contracts'
import { TokenScope } from '../../choices.ts'
import { sessionApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ConfirmDialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Badge, CopyLine, Loading } from '../../parts/small.tsx'
import { invalidate, useResource } from '../../store/resource.ts'
import { useSession } from '../../store/session.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'

type Scope = (typeof TokenScope)[number]

/** API tokens: made here, shown once, revoked here. */
export function Tokens() {
  const words = useWords().settings
  const tokens = useResource('tokens', sessionApi.tokens)
  const [created, setCreated] = useState<CreatedToken | null>(null)
  return (
    <section>
      <h2>{words.tokens}</h2>
      <p className="faint">{words.tokensText}</p>
      {tokens.data === undefined ? (
        tokens.problem === null ? (
          <Loading />
        ) : (
          <ProblemNote problem={tokens.problem} onRetry={tokens.reload} />
        )
      ) : (
        <TokenList tokens={tokens.data.items} />
      )}
      {created !== null && (
        <div className="notice" role="status">
          <p>{created.token === null ? words.tokenAlready : words.tokenOnce}</p>
          {created.token !== null && <CopyLine text={created.token} testId={testIds.createdToken} />}
        </div>
      )}
      <CreateTokenForm onCreated={setCreated} />
    </section>
  )
}

function TokenList({ tokens }: { tokens: TokenView[] }) {
  const words = useWords().settings
  const format = useFormat()
  const [revoking, setRevoking] = useState<TokenView | null>(null)
  if (tokens.length === 0) return <p>{words.tokensEmpty}</p>
  return (
    <ul className="plain-list">
      {tokens.map((token) => (
        <li key={token.id} className="token">
          <span className={token.revoked_at === null ? undefined : 'struck'}>{token.name}</span>
          <span className="faint">{token.scopes.map((scope) => words.scopes[scope]).join(', ')}</span>
          <span className="faint">{words.created(format.relative(token.created_at))}</span>
          <span className="faint">
            {token.last_used_at === null ? words.neverUsed : words.lastUsed(format.relative(token.last_used_at))}
          </span>
          {token.revoked_at === null ? (
            <Button look="quiet" onClick={() => setRevoking(token)}>
              {words.revoke}
            </Button>
          ) : (
            <Badge>{words.revoked}</Badge>
          )}
        </li>
      ))}
      {revoking !== null && (
        <ConfirmDialog
          danger
          title={words.revokeTitle(revoking.name)}
          text={words.revokeText}
          confirm={words.revoke}
          onClose={() => setRevoking(null)}
          act={async () => {
            await sessionApi.revokeToken(revoking.id)
            invalidate('tokens')
          }}
        />
      )}
    </ul>
  )
}

function CreateTokenForm({ onCreated }: { onCreated: (token: CreatedToken) => void }) {
  const words = useWords().settings
  const { owner } = useSession()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set<Scope>(['read', 'write']))
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const offered = TokenScope.filter((scope) => scope !== 'admin' || owner.role === 'admin')
  const create = async () => {
    setBusy(true)
    setProblem(null)
    try {
      onCreated(await sessionApi.createToken(name.trim(), [...scopes]))
      setName('')
      invalidate('tokens')
    } catch (error) {
      setProblem(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault()
        void create()
      }}
    >
      <label className="field">
        <span className="field-label">{words.tokenName}</span>
        <input value={name} maxLength={120} onChange={(event) => setName(event.target.value)} />
      </label>
      <fieldset className="checks">
        <legend className="field-label">{words.tokenScopes}</legend>
        {offered.map((scope) => (
          <label key={scope}>
            <input
              type="checkbox"
              checked={scopes.has(scope)}
              onChange={() => {
                const next = new Set(scopes)
                if (!next.delete(scope)) next.add(scope)
                setScopes(next)
              }}
            />
            {words.scopes[scope]}
          </label>
        ))}
      </fieldset>
      {problem !== null && <ProblemNote problem={problem} />}
      <Button type="submit" busy={busy} disabled={name.trim() === '' || scopes.size === 0} testId={testIds.createToken}>
        {words.createToken}
      </Button>
    </form>
  )
}
