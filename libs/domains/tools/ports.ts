import type { CapabilityClass, CreateToolSource, Egress, RefusedTool, Trust } from '#contracts'
import type { JsonObject } from '#kernel/ports/model-gateway'

/** Whose notes, and in which realm: notes of a fiction are never read elsewhere. */
export type NoteScope = { ownerId: string; characterId: string; realmId: string }

/** A note with one of its versions. `text` is null where that version is a deletion, or its text was erased. */
export type NoteRow = {
  id: string
  number: number
  version: number
  current_version: number
  deleted: boolean
  content_id: string | null
  text: string | null
  trust: Trust
  created_at: Date
}

/** A note in a list: the beginning of its text (at most 120 signs; null once erased) and how many signs it has. */
export type NoteLine = Pick<NoteRow, 'number' | 'version' | 'content_id' | 'trust' | 'created_at'> & {
  beginning: string | null
  characters: number
}

/** What was done under a key. */
/** `argumentsHash` is null once what was noted is erased. */
export type NoteKey = { argumentsHash: string | null; number: number; version: number; trust: Trust; deleted: boolean }

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

export type SourceKind = 'http' | 'openapi' | 'mcp'

/** How a source is reached, for people and for its kind; what of it was left out. No secrets. */
export type SourceSettings = { place: string; url?: string; server?: string; header_names: string[]; refused: RefusedTool[] }

export type ToolSourceRow = { id: string; owner_id: string; name: string; kind: SourceKind; settings: SourceSettings; created_at: Date }

/**
 * A tool as a source declares it. `floor` is the class that it has at least, `usual` what it has unless the owner says otherwise; `remote`
 * is what its kind needs to call it.
 */
export type ToolDeclaration = {
  description: string
  parameters: JsonObject
  floor: CapabilityClass
  usual: CapabilityClass
  egress: Egress
  price_micros: number | null
  remote: JsonObject
}

/** `name` is unique within the source; `version` is the digest of the declaration. */
export type OfferedTool = { name: string; declaration: ToolDeclaration; version: string }

/** An offered tool and what its owner said to it. */
export type SourceToolRow = OfferedTool & {
  source_id: string
  accepted_version: string | null
  capability: CapabilityClass | null
  missing: boolean
}

/** Header values as they are kept. */
export type SealedHeaders = { key_id: string; sealed: Uint8Array }

/** Sources and what they offer. Every read is scoped to an owner. */
export interface ToolSourceStore {
  /** Makes the writers of an owner's sources wait for each other until the unit of work ends. */
  lockOwner(ownerId: string): Promise<void>
  list(ownerId: string): Promise<ToolSourceRow[]>
  find(ownerId: string, sourceId: string): Promise<ToolSourceRow | null>
  insert(source: ToolSourceRow, secret: SealedHeaders | null): Promise<void>
  /** Tombstones the source, takes its headers and every acceptance of its tools. */
  remove(ownerId: string, sourceId: string, at: Date): Promise<void>
  headers(ownerId: string, sourceId: string): Promise<SealedHeaders | null>
  /** Of one source, or of all of an owner, by name. */
  tools(ownerId: string, sourceId: string | null): Promise<SourceToolRow[]>
  /** Writes what is offered now: new and changed ones as they are, those left out as missing. Acceptances stay with their versions. */
  putTools(source: Pick<ToolSourceRow, 'id' | 'owner_id'>, offered: readonly OfferedTool[], at: Date): Promise<void>
  /** Accepts exactly these versions; every other tool of the source is accepted no longer. */
  accept(sourceId: string, tools: readonly { name: string; version: string; capability: CapabilityClass | null }[]): Promise<void>
}

/** What a declaration comes to: how the source is reached, and what it offers. */
export type DeclaredSource = {
  kind: SourceKind
  settings: Omit<SourceSettings, 'header_names' | 'refused'>
  headers: Readonly<Record<string, string>>
  offered: readonly OfferedTool[]
  refused: readonly RefusedTool[]
}

/** The outer side of sources: reads declarations, asks far sides what they offer. */
export interface SourceReader {
  /** Reads what an owner declared; asks nobody. A server that is started here is for admins. Throws LingtaiError validation_failed. */
  declare(input: CreateToolSource, options: { isAdmin: boolean }): DeclaredSource
  /**
   * Asks an MCP server what it offers; other kinds have said all. Throws LingtaiError: validation_failed where its address is refused or has
   * no machine behind it, remote_failed where it does not answer as it should, wrong_state where the operator took it off the list.
   */
  discover(
    source: ToolSourceRow,
    options: { headers: Readonly<Record<string, string>>; signal: AbortSignal },
  ): Promise<Pick<DeclaredSource, 'offered' | 'refused'>>
}

/** Encrypts what is kept encrypted (decision 38). */
export interface SecretBox {
  /** `context` names owner and row; the same must be given to open. Throws LingtaiError wrong_state where there is no key. */
  seal(text: string, context: string): Promise<SealedHeaders>
  /** Null: the key is lost, or this is not what was sealed. */
  open(sealed: SealedHeaders, context: string): Promise<string | null>
}
