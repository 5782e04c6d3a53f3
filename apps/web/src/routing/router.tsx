import { useCallback, useSyncExternalStore } from 'react'
import type { AnchorHTMLAttributes, MouseEvent } from 'react'
import type { Route } from './routes.ts'
import { parseRoute } from './routes.ts'

export type { Route } from './routes.ts'
export { paths } from './routes.ts'

export type DrawerFace = 'map' | 'memory' | 'why'
export type Place = { route: Route; query: URLSearchParams; path: string }

const listeners = new Set<() => void>()
window.addEventListener('popstate', () => listeners.forEach((listener) => listener()))

/** Goes to another view; the address is the state, so back and reload work. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const here = window.location.pathname + window.location.search
  if (to === here) return
  if (options.replace === true) window.history.replaceState(null, '', to)
  else window.history.pushState(null, '', to)
  listeners.forEach((listener) => listener())
}

/** The present address with some query fields changed; null takes a field away. */
export function addressWith(changes: Record<string, string | null>, pathname = window.location.pathname): string {
  const query = new URLSearchParams(window.location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  return text === '' ? pathname : `${pathname}?${text}`
}

let place: Place | null = null

function readPlace(): Place {
  const path = window.location.pathname + window.location.search
  if (place?.path !== path)
    place = { path, route: parseRoute(window.location.pathname), query: new URLSearchParams(window.location.search) }
  return place
}

export function usePlace(): Place {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, readPlace)
}

/** One query field of the address and its setter; setting replaces the entry, for filters and the like. */
export function useQueryField(name: string): [string | null, (value: string | null) => void] {
  const value = usePlace().query.get(name)
  const set = useCallback((next: string | null) => navigate(addressWith({ [name]: next === '' ? null : next }), { replace: true }), [name])
  return [value, set]
}

export function drawerFaceOf(query: URLSearchParams): DrawerFace | null {
  const face = query.get('drawer')
  return face === 'map' || face === 'memory' || face === 'why' ? face : null
}

/** A real link, so that it opens in a new tab; a plain click stays in the page. */
export function Link({ to, onClick, ...rest }: { to: string } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'>) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(to)
  }
  return <a href={to} onClick={follow} {...rest} />
}
