import { useSyncExternalStore } from 'react'

type Listener = () => void
const listeners = new Map<string, Set<Listener>>()

function emit(key: string): void {
  listeners.get(key)?.forEach((listener) => listener())
}

/** Storage may be refused (private windows, full quota): the page then works without a memory of its own. */
function guarded<T>(action: () => T, fallback: T): T {
  try {
    return action()
  } catch {
    return fallback // storage is a convenience here; its refusal must not stop the page
  }
}

export type PersistedKind = 'session' | 'local'

function storageOf(kind: PersistedKind): Storage {
  return kind === 'session' ? window.sessionStorage : window.localStorage
}

export function readPersisted(kind: PersistedKind, key: string): string | null {
  return guarded(() => storageOf(kind).getItem(`lingtai.${key}`), null)
}

export function writePersisted(kind: PersistedKind, key: string, value: string | null): void {
  guarded(() => {
    if (value === null || value === '') storageOf(kind).removeItem(`lingtai.${key}`)
    else storageOf(kind).setItem(`lingtai.${key}`, value)
  }, undefined)
  emit(`${kind}:${key}`)
}

/** A stored string that survives a reload; every reader of the key sees a write at once. */
export function usePersisted(kind: PersistedKind, key: string): [string | null, (value: string | null) => void] {
  const value = useSyncExternalStore(
    (listener) => {
      const name = `${kind}:${key}`
      const set = listeners.get(name) ?? new Set<Listener>()
      set.add(listener)
      listeners.set(name, set)
      return () => set.delete(listener)
    },
    () => readPersisted(kind, key),
  )
  return [value, (next) => writePersisted(kind, key, next)]
}
