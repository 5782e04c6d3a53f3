import { ProblemNote } from '../../parts/problem-note.tsx'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { LanguageSwitch } from '../frame/switches.tsx'

/** Nobody is signed in: says how a browser is let in. */
export function SignedOut({ linkProblem }: { linkProblem: unknown }) {
  const words = useWords()
  return (
    <main className="threshold" data-testid={testIds.signinHelp}>
      <div className="threshold-head">
        <p className="brand" lang="zh">
          灵台
        </p>
        <LanguageSwitch />
      </div>
      <p className="threshold-lead">{words.session.tagline}</p>
      <h1>{words.session.signedOutTitle}</h1>
      <p>{words.session.signedOutWhy}</p>
      {linkProblem !== null && <ProblemNote problem={linkProblem} title={words.session.linkFailed} />}
      <h2>{words.session.howTitle}</h2>
      <ol className="threshold-steps">
        <li>{words.session.howFirst}</li>
        <li>
          {words.session.howCommand}
          <pre>
            <code>npm run -s signin</code>
          </pre>
        </li>
        <li>{words.session.howAdmin}</li>
      </ol>
      <p className="faint">{words.session.draftKept}</p>
    </main>
  )
}
