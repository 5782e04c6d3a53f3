import { Button, Choice } from '../../parts/button.tsx'
import { toastProblem } from '../../parts/toasts.tsx'
import { Link, paths } from '../../routing/router.tsx'
import { useSession, useSessionState } from '../../store/session.tsx'
import type { Language } from '../../words/preferences.ts'
import { useLanguage } from '../../words/preferences.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { OwnerGrant } from '../grants/owner-grant.tsx'
import { ThemeChoice } from '../frame/switches.tsx'
import { Personas } from './personas.tsx'
import { Tokens } from './tokens.tsx'

export function SettingsPage() {
  const words = useWords()
  const [language, setLanguage] = useLanguage()
  const { owner } = useSession()
  const { signOut } = useSessionState()
  return (
    <div className="page settings">
      <h1>{words.settings.title}</h1>
      <section>
        <h2>{words.settings.language}</h2>
        <Choice<Language>
          label={words.settings.language}
          value={language}
          onChange={setLanguage}
          options={[
            { value: 'en', label: <span lang="en">{words.settings.languages.en}</span> },
            { value: 'zh', label: <span lang="zh-CN">{words.settings.languages.zh}</span> },
          ]}
        />
        <h2>{words.settings.theme}</h2>
        <ThemeChoice />
      </section>
      <Personas />
      <OwnerGrant />
      <Tokens />
      <Instance />
      <section>
        <h2>{words.settings.account}</h2>
        <p>
          {owner.name} <span className="faint">{words.settings.role(words.admin.roles[owner.role])}</span>
        </p>
        <div className="button-row">
          <Button onClick={() => void signOut().catch(toastProblem)}>{words.session.signOut}</Button>
          {owner.role === 'admin' && (
            <Link to={paths.admin} className="button button-plain">
              {words.frame.admin}
            </Link>
          )}
        </div>
      </section>
    </div>
  )
}

function Instance() {
  const words = useWords()
  const format = useFormat()
  const { instance } = useSession()
  const rows: [string, string][] = [
    [
      words.settings.model,
      `${instance.model.name}${instance.model.demo ? ` (${words.banner.demo})` : ''} · ${words.banner.window(format.number(instance.model.window_tokens))}`,
    ],
    [words.settings.embedder, `${instance.embedder.name}${instance.embedder.lexical ? ` (${words.settings.lexical})` : ''}`],
    [words.settings.version, `${instance.version} · ${words.settings.tier[instance.tier]}`],
  ]
  return (
    <section>
      <h2>{words.settings.instance}</h2>
      <dl className="facts">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p>
        <a href="/docs">{words.settings.apiDocument}</a>
      </p>
    </section>
  )
}
