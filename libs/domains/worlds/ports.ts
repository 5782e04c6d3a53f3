export type RealmRow = { id: string; kind: string; name: string }

/** Realms: where something is true (spec/0, 真界 / 境界). */
export interface RealmStore {
  list(ownerId: string): Promise<RealmRow[]>
  find(ownerId: string, realmId: string): Promise<RealmRow | null>
  /** The owner's real realm; null only before it was made. */
  real(ownerId: string): Promise<RealmRow | null>
  insert(realm: RealmRow & { owner_id: string; created_at: Date }): Promise<void>
}

export type UserPersonaRow = { id: string; version_id: string; name: string; description_content_id: string | null }

/** The owner's own personas and their immutable versions. */
export interface UserPersonaStore {
  /** With the newest version of each. */
  list(ownerId: string): Promise<UserPersonaRow[]>
  find(ownerId: string, personaId: string): Promise<UserPersonaRow | null>
  insert(persona: UserPersonaRow & { owner_id: string; created_at: Date }): Promise<void>
}

export type LorebookRow = {
  id: string
  character_id: string | null
  name: string
  source_content_id: string | null
  entries: number
  created_at: Date
}

/** Settings of a book that activation needs; what is absent inherits (case C3). The rest stays in the book's source text. */
export type LorebookSettings = { scan_depth?: number; token_budget?: number; recursive?: boolean }

export type NewLorebook = {
  id: string
  owner_id: string
  character_id: string | null
  name: string
  source_content_id: string
  settings: LorebookSettings
  created_at: Date
  /** In list order. */
  entries: readonly { id: string; version_id: string; content_id: string }[]
}

/** Lorebooks, their entries and the entries' immutable versions. */
export interface LorebookStore {
  list(ownerId: string): Promise<LorebookRow[]>
  find(ownerId: string, lorebookId: string): Promise<LorebookRow | null>
  ownsCharacter(ownerId: string, characterId: string): Promise<boolean>
  insert(book: NewLorebook): Promise<void>
}
