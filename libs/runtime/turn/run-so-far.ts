import { meetTrust } from '#contracts'
import type { Trust } from '#contracts'
import type { RunEvent } from '#kernel/reducer/actions'
import type { Segment } from './delta-writer.ts'
import type { FoldInsert } from './fold-answer.ts'
import { insertOf } from './inserts.ts'
import type { PendingContent } from './ports.ts'

/** A durable piece of the answer, and its part in it. */
export type SaidSegment = Omit<Segment, 'digest'> & { part: number }

/** What one run has said, done and seen so far: the material of its next turn and of its answer. */
export class RunSoFar {
  readonly segments: SaidSegment[]
  readonly inserts: FoldInsert[]
  /** Texts that this run's events refer to and that are not read back: interjections, arguments, observations. */
  readonly #texts = new Map<string, string>()
  /** The meet of everything that the model saw so far; null before it saw anything (K1). */
  #seen: Trust | null

  constructor(before: { segments: readonly SaidSegment[]; inserts: readonly FoldInsert[]; trust: Trust } | null) {
    this.segments = [...(before?.segments ?? [])]
    this.inserts = [...(before?.inserts ?? [])]
    this.#seen = before?.trust ?? null
  }

  get seenTrust(): Trust | null {
    return this.#seen
  }

  /** How far what the model says now is to be believed: not at all before anybody knows what it saw. */
  get trust(): Trust {
    return this.#seen ?? 'untrusted'
  }

  /** The model sees a context of this trust. */
  see(trust: Trust): void {
    this.#seen = meetTrust([trust, this.#seen ?? trust])
  }

  say(segments: readonly SaidSegment[]): void {
    this.segments.push(...segments)
  }

  /** What recorded events put between the words. */
  insert(events: readonly RunEvent[]): void {
    for (const event of events) {
      const insert = insertOf(event, (contentId) => this.textOf(contentId))
      if (insert) this.inserts.push(insert)
    }
  }

  /** Contents that stand between the words: interjections, arguments, observations. */
  get shownContents(): string[] {
    return this.inserts.flatMap((insert) => insert.content_id ?? [])
  }

  /** Texts that were erased meanwhile are forgotten here too: no later turn and no answer tells them (decision 13). */
  forget(erased: ReadonlySet<string>): void {
    for (const id of erased) this.#texts.delete(id)
    this.inserts.forEach((insert, index) => {
      if (insert.content_id === null || !erased.has(insert.content_id)) return
      this.inserts[index] = insert.action === null ? { ...insert, text: '' } : { ...insert, action: { ...insert.action, body: null } }
    })
  }

  keepText(contentId: string, text: string): void {
    this.#texts.set(contentId, text)
  }

  keepTexts(contents: readonly PendingContent[]): void {
    for (const { id, content } of contents) if (typeof content === 'string') this.keepText(id, content)
  }

  textOf(contentId: string): string | null {
    return this.#texts.get(contentId) ?? null
  }
}
