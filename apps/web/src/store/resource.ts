import { useCallback, useEffect, useSyncExternalStore } from 'react'

/** What is known of something that the server holds. `data` stays while it is read again. */
export type Resource<T> = { data: T | undefined; problem: unknown; loading: boolean; reload: () => void }

type Entry = {
  snapshot: { data: unknown; problem: unknown; loading: boolean }
  listeners: Set<() => void>
  load: (() => Promise<unknown>) | null
  ticket: number
  readAt: number
}

const entries = new Map<string, Entry>()
const idle = { data: undefined, problem: null, loading: false }
const focusAge = 4000

function entryOf(key: string): Entry {
  const existing = entries.get(key)
  if (existing !== undefined) return existing
  const entry: Entry = { snapshot: idle, listeners: new Set(), load: null, ticket: 0, readAt: 0 }
  entries.set(key, entry)
  return entry
}

function update(entry: Entry, change: Partial<Entry['snapshot']>): void {
  entry.snapshot = { ...entry.snapshot, ...change }
  entry.listeners.forEach((listener) => listener())
}

function read(entry: Entry): void {
  if (entry.load === null) return
  const ticket = (entry.ticket += 1)
  entry.readAt = Date.now()
  update(entry, { loading: true })
  entry.load().then(
    (data) => {
      if (entry.ticket === ticket) update(entry, { data, problem: null, loading: false })
    },
    (problem: unknown) => {
      if (entry.ticket === ticket) update(entry, { problem, loading: false })
    },
  )
}

/** Reads a thing once per key and shares it between components; null reads nothing. Comes fresh when the window gains focus. */
export function useResource<T>(key: string | null, load: () => Promise<T>): Resource<T> {
  const subscribe = useCallback(
    (listener: () => void) => {
      if (key === null) return () => undefined
      const entry = entryOf(key)
      entry.listeners.add(listener)
      return () => entry.listeners.delete(listener)
    },
    [key],
  )
  const snapshot = useSyncExternalStore(subscribe, () => (key === null ? idle : entryOf(key).snapshot))
  useEffect(() => {
    if (key === null) return
    const entry = entryOf(key)
    entry.load = load
    if (entry.readAt === 0) read(entry)
  })
  const reload = useCallback(() => {
    if (key !== null) read(entryOf(key))
  }, [key])
  // A key names one kind of thing, always read by the same call: the cast restores what the map forgets.
  return { data: snapshot.data as T | undefined, problem: snapshot.problem, loading: snapshot.loading, reload }
}

/** Reads again what is shown under this key prefix, and forgets what is not shown. */
export function invalidate(...prefixes: string[]): void {
  for (const [key, entry] of entries) {
    if (!prefixes.some((prefix) => key.startsWith(prefix))) continue
    if (entry.listeners.size > 0) read(entry)
    else entries.delete(key)
  }
}

/** Puts an answer that another call brought in its place. */
export function put(key: string, data: unknown): void {
  const entry = entryOf(key)
  entry.ticket += 1
  entry.readAt = Date.now()
  update(entry, { data, problem: null, loading: false })
}

/** Another owner signed in, or nobody is: nothing of before may show. */
export function forgetEverything(): void {
  for (const entry of entries.values()) {
    entry.ticket += 1
    entry.readAt = 0
    update(entry, idle)
  }
}

window.addEventListener('focus', () => {
  for (const entry of entries.values()) {
    if (entry.listeners.size > 0 && Date.now() - entry.readAt > focusAge) read(entry)
  }
})
