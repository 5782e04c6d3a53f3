import { Frame } from './features/frame/frame.tsx'
import { SignedOut } from './features/session/signed-out.tsx'
import { ProblemNote } from './parts/problem-note.tsx'
import { useSessionState } from './store/session.tsx'
import { useWords } from './words/words.ts'

export function App() {
  const words = useWords()
  const { state, readAgain } = useSessionState()
  switch (state.phase) {
    case 'in':
      return <Frame />
    case 'out':
      return <SignedOut linkProblem={state.linkProblem} />
    case 'unreachable':
      return (
        <main className="threshold">
          <h1>{words.session.unreachableTitle}</h1>
          <ProblemNote problem={state.problem} onRetry={readAgain} />
        </main>
      )
    default:
      return (
        <main className="threshold">
          <p role="status">{state.phase === 'redeeming' ? words.session.signingIn : words.common.loading}</p>
        </main>
      )
  }
}
