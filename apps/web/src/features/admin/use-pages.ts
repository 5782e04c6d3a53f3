import { useCallback, useEffect, useEffectEvent, useState } from 'react'
import type { Page } from '../../api/endpoints.ts'

export type Pages<T> = { items: T[] | null; problem: unknown; loading: boolean; next: string | null; more: () => void; reload: () => void }

/** A list read page by page; `key` names its filters and starts it anew when they change. */
export function usePages<T>(key: string, read: (cursor: string | null) => Promise<Page<T>>): Pages<T> {
  const [state, setState] = useState<{ key: string; items: T[] | null; problem: unknown; loading: boolean; next: string | null }>({
    key,
    items: null,
    problem: null,
    loading: true,
    next: null,
  })
  const [round, setRound] = useState(0)

  // `read` is made anew with each drawing; the key says when it means something else.
  const readFirst = useEffectEvent(() => read(null))
  useEffect(() => {
    let current = true
    setState((before) => ({ key, items: before.key === key ? before.items : null, problem: null, loading: true, next: null }))
    readFirst().then(
      (page) => current && setState({ key, items: page.items, problem: null, loading: false, next: page.next_cursor }),
      (problem: unknown) => current && setState((before) => ({ ...before, problem, loading: false })),
    )
    return () => {
      current = false
    }
  }, [key, round])

  const { next } = state
  const more = () => {
    if (next === null) return
    setState((before) => ({ ...before, loading: true }))
    read(next).then(
      (page) =>
        setState((before) =>
          before.key === key
            ? { ...before, items: [...(before.items ?? []), ...page.items], next: page.next_cursor, loading: false }
            : before,
        ),
      (problem: unknown) => setState((before) => ({ ...before, problem, loading: false })),
    )
  }
  const reload = useCallback(() => setRound((before) => before + 1), [])
  return { items: state.items, problem: state.problem, loading: state.loading, next, more, reload }
}
