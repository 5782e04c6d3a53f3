import type { Trust } from '#contracts'

/** What an action brought, as it is kept: by whom, when, how far it is to be believed. */
export type Observed = { source: string; at: string; licence: string | null; trust: Trust; truncated: boolean; text: string }

const trusts: readonly string[] = ['untrusted', 'workspace', 'trusted'] satisfies Trust[]

/** Reads an observation; null for a text that is none. Trust that is not known counts as none at all. */
export function readObservation(text: string): Observed | null {
  const read = readObject(text)
  if (read === null || typeof read.text !== 'string' || typeof read.source !== 'string') return null
  const { source, at, licence, trust, truncated } = read
  return {
    source,
    at: typeof at === 'string' && !Number.isNaN(Date.parse(at)) ? at : '',
    licence: typeof licence === 'string' ? licence : null,
    trust: typeof trust === 'string' && trusts.includes(trust) ? (trust as Trust) : 'untrusted',
    truncated: truncated === true,
    text: read.text,
  }
}

/** A JSON object's members, or null for anything else. */
export function readObject(text: string): Record<string, unknown> | null {
  try {
    const read: unknown = JSON.parse(text)
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : null
  } catch {
    return null // no JSON: the caller shows that there is nothing to read
  }
}
