import type { Trust } from '#contracts'

/** Whose notes, and in which realm: notes of a fiction are never read elsewhere. */
export type NoteScope = { ownerId: string; characterId: string; realmId: string }

/** A note with one of its versions. `text` is null where that version is a deletion, or its text was erased. */
export type NoteRow = {
  id: string
  number: number
  version: number
  current_version: number
  deleted: boolean
  text: string | null
  trust: Trust
  created_at: Date
}

/** A note in a list: the beginning of its text (at most 120 signs; null once erased) and how many signs it has. */
export type NoteLine = Pick<NoteRow, 'number' | 'version' | 'trust' | 'created_at'> & { beginning: string | null; characters: number }

/** What was done under a key. */
export type NoteKey = { argumentsHash: string; number: number; version: number; trust: Trust; deleted: boolean }

/** A version on its way in; without a content it is a deletion. */
export type NewNoteVersion = { noteId: string; version: number; contentId: string | null; trust: Trust; runId: string; at: Date }

/** A character's notes and their immutable versions. */
export interface NoteStore {
  /** Notes that are not deleted, in number order. */
  list(scope: NoteScope): Promise<NoteLine[]>
  countLiving(scope: NoteScope): Promise<number>
  /** The named version, or the current one. */
  find(scope: NoteScope, number: number, version: number | null): Promise<NoteRow | null>
  /** Makes the writers of a character's notes wait for each other until the unit of work ends. False: no such character. */
  lockCharacter(ownerId: string, characterId: string): Promise<boolean>
  lastNumber(scope: NoteScope): Promise<number>
  insert(scope: NoteScope, note: { id: string; number: number }, first: NewNoteVersion): Promise<void>
  addVersion(scope: NoteScope, next: NewNoteVersion): Promise<void>
  key(ownerId: string, key: string): Promise<NoteKey | null>
  insertKey(row: { ownerId: string; key: string; argumentsHash: string; noteId: string; version: number; at: Date }): Promise<void>
}
