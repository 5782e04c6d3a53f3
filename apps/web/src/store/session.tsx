import { createContext, useCallback, useContext, useEffect, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import type { SessionView } from '#contracts'
import { ApiProblem, listenForLostSession } from '../api/client.ts'
import { sessionApi } from '../api/endpoints.ts'
import { forgetEverything } from './resource.ts'

export type SessionState =
  | { phase: 'reading' | 'redeeming' }
  | { phase: 'in'; session: SessionView }
  /** `linkProblem`: why the link in the address did not let the reader in. */
  | { phase: 'out'; linkProblem: unknown }
  | { phase: 'unreachable'; problem: unknown }

type SessionValue = { state: SessionState; signOut: () => Promise<void>; readAgain: () => void; linkRefused: boolean }
const SessionContext = createContext<SessionValue | null>(null)

/**
 * The secret of a sign-in link, taken out of the address before anything else sees it: it stays in no history entry and goes in no
 * request but the one that redeems it (decision 33).
 */
export function takeSigninSecret(): string | null {
  const match = /^#signin=(.+)$/.exec(window.location.hash)
  if (match === null) return null
  window.history.replaceState(null, '', window.location.pathname + window.location.search)
  try {
    return decodeURIComponent(match[1] ?? '')
  } catch {
    return match[1] ?? '' // not percent-encoded after all: the server judges it
  }
}

/** `redemption`: the answer to the sign-in link of this page load, asked for once and outside of rendering, since a link works once. */
export function SessionProvider({ redemption, children }: { redemption: Promise<SessionView> | null; children: ReactNode }) {
  const [state, setState] = useState<SessionState>({ phase: redemption === null ? 'reading' : 'redeeming' })
  const [linkRefused, setLinkRefused] = useState(false)

  const read = useCallback(async (linkProblem: unknown) => {
    try {
      setState({ phase: 'in', session: await sessionApi.read() })
    } catch (problem) {
      if (problem instanceof ApiProblem && problem.code === 'not_signed_in') setState({ phase: 'out', linkProblem })
      else setState({ phase: 'unreachable', problem })
    }
  }, [])

  useEffect(() => {
    listenForLostSession(() => {
      forgetEverything()
      setState((before) => (before.phase === 'in' ? { phase: 'out', linkProblem: null } : before))
    })
    if (redemption === null) {
      void read(null)
      return
    }
    redemption.then(
      (session) => setState({ phase: 'in', session }),
      (problem: unknown) => {
        setLinkRefused(true)
        void read(problem)
      },
    )
  }, [read, redemption])

  // A link opened in a tab that shows the page already changes nothing but the fragment.
  useEffect(() => {
    const redeemLater = () => {
      if (window.location.hash.startsWith('#signin=')) window.location.reload()
    }
    window.addEventListener('hashchange', redeemLater)
    return () => window.removeEventListener('hashchange', redeemLater)
  }, [])

  const value = useMemo<SessionValue>(
    () => ({
      state,
      linkRefused,
      readAgain: () => {
        setState({ phase: 'reading' })
        void read(null)
      },
      signOut: async () => {
        await sessionApi.signOut()
        forgetEverything()
        setState({ phase: 'out', linkProblem: null })
      },
    }),
    [state, linkRefused, read],
  )
  return <SessionContext value={value}>{children}</SessionContext>
}

export function useSessionState(): SessionValue {
  const value = useContext(SessionContext)
  if (value === null) throw new Error('SessionProvider is missing')
  return value
}

/** The session of a signed-in reader; only for components shown when there is one. */
export function useSession(): SessionView {
  const { state } = useSessionState()
  if (state.phase !== 'in') throw new Error('nobody is signed in')
  return state.session
}
