import type { Trust } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { NoteKey, NoteLine, NoteRow, NoteScope, NoteStore } from './ports.ts'

/** Living notes of one character in one realm. */
export const NOTES_MAX = 200
/** Versions of one note; beyond them a new note is begun. */
export const NOTE_VERSIONS_MAX = 1_000

/**
 * A change of the notes as a tool asks for it. The key is bound to the hash of the arguments; a note goes with the content that its arguments
 * are stored as (decision 13).
 */
export type NoteChange = {
  scope: NoteScope
  runId: string
  trust: Trust
  key: string
  argumentsHash: string
  argumentsContentId: string | null
}

/** Why a change was not made; nothing happened. */
export type NoteRefusal = 'no_such_note' | 'too_many_notes' | 'too_many_versions' | 'key_used_otherwise'

export type NoteOutcome = { number: number; version: number } | { refused: NoteRefusal }

/** What a character notes down: numbered texts, each change a version, each deletion one that can be taken back. */
export class NotesService {
  readonly #unit: UnitOfWork
  readonly #store: NoteStore
  readonly #contents: ContentStore
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(parts: { unit: UnitOfWork; store: NoteStore; contents: ContentStore; clock: Clock; ids: Ids }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#contents = parts.contents
    this.#clock = parts.clock
    this.#ids = parts.ids
  }

  list(scope: NoteScope): Promise<NoteLine[]> {
    return this.#store.list(scope)
  }

  read(scope: NoteScope, number: number, version: number | null): Promise<NoteRow | null> {
    return this.#store.find(scope, number, version)
  }

  /** A new note, or the next version of a numbered one; a deleted one lives again. */
  write(change: NoteChange & { number: number | null; text: string }): Promise<NoteOutcome> {
    return this.#once(change, async (at) => {
      const { scope, number } = change
      const note = number === null ? null : await this.#store.find(scope, number, null)
      if (number !== null && !note) return { refused: 'no_such_note' }
      if ((!note || note.deleted) && (await this.#store.countLiving(scope)) >= NOTES_MAX) return { refused: 'too_many_notes' }
      if (note && note.current_version >= NOTE_VERSIONS_MAX) return { refused: 'too_many_versions' }
      const content = await this.#contents.put({
        owner_id: scope.ownerId,
        media_type: 'text/plain',
        content: change.text,
        derived_from: change.argumentsContentId === null ? [] : [change.argumentsContentId],
      })
      if (note) return this.#addVersion(change, note, content.id, at)
      const fresh = { id: this.#ids.next(), number: (await this.#store.lastNumber(scope)) + 1 }
      const first = { noteId: fresh.id, version: 1, contentId: content.id, trust: change.trust, runId: change.runId, at }
      await this.#store.insert(scope, fresh, first)
      return { noteId: fresh.id, number: fresh.number, version: 1 }
    })
  }

  /** Deletes a note, by a version that says so. */
  remove(change: NoteChange & { number: number }): Promise<NoteOutcome> {
    return this.#once(change, async (at) => {
      const note = await this.#store.find(change.scope, change.number, null)
      return !note || note.deleted ? { refused: 'no_such_note' } : this.#addVersion(change, note, null, at)
    })
  }

  /** What was done under a key; null is proof that nothing was, since the two are written together. */
  lookUp(ownerId: string, key: string): Promise<NoteKey | null> {
    return this.#store.key(ownerId, key)
  }

  async #addVersion(change: NoteChange, note: NoteRow, contentId: string | null, at: Date) {
    const version = note.current_version + 1
    await this.#store.addVersion(change.scope, { noteId: note.id, version, contentId, trust: change.trust, runId: change.runId, at })
    return { noteId: note.id, number: note.number, version }
  }

  /** Does a change once per key: the key's row belongs to the change's own transaction, and writers of one character queue. */
  #once(
    change: NoteChange,
    act: (at: Date) => Promise<{ noteId: string; number: number; version: number } | { refused: NoteRefusal }>,
  ): Promise<NoteOutcome> {
    const { scope, key, argumentsHash } = change
    return this.#unit.run(async () => {
      if (!(await this.#store.lockCharacter(scope.ownerId, scope.characterId))) return { refused: 'no_such_note' }
      const earlier = await this.#store.key(scope.ownerId, key)
      if (earlier && earlier.argumentsHash !== null && earlier.argumentsHash !== argumentsHash) return { refused: 'key_used_otherwise' }
      if (earlier) return { number: earlier.number, version: earlier.version }
      const at = this.#clock.now()
      const result = await act(at)
      if ('refused' in result) return result
      await this.#store.insertKey({ ownerId: scope.ownerId, key, argumentsHash, noteId: result.noteId, version: result.version, at })
      return { number: result.number, version: result.version }
    })
  }
}
