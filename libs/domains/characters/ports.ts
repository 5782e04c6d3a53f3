export type CharacterRow = {
  id: string
  owner_id: string
  realm_id: string
  realm_kind: string
  realm_name: string
  avatar_content_id: string | null
  demo: boolean
  accepted_at: Date | null
  created_at: Date
  version: number
  persona_version_id: string
  card_content_id: string
  lore_entries: number
}

export type PersonaVersionRow = {
  id: string
  version: number
  origin: 'import' | 'authored' | 'recast'
  created_at: Date
  current: boolean
}

export type NewPersonaVersion = {
  id: string
  owner_id: string
  character_id: string
  version: number
  card_content_id: string
  origin: PersonaVersionRow['origin']
  created_at: Date
}

/** `name` is a label for lists and logs; the card holds the exact one. */
export type NewCharacter = Pick<
  CharacterRow,
  'id' | 'owner_id' | 'realm_id' | 'avatar_content_id' | 'demo' | 'accepted_at' | 'created_at'
> & {
  name: string
}

/** Characters and their immutable persona versions. Deleted ones are not found. */
export interface CharacterStore {
  list(ownerId: string, page: { after: string | null; limit: number }): Promise<CharacterRow[]>
  find(ownerId: string, characterId: string): Promise<CharacterRow | null>
  /** As `find`, with the row locked until the unit of work ends. */
  lock(ownerId: string, characterId: string): Promise<CharacterRow | null>
  insert(character: NewCharacter, version: NewPersonaVersion): Promise<void>
  addVersion(version: NewPersonaVersion, name: string): Promise<void>
  versions(characterId: string): Promise<PersonaVersionRow[]>
  accept(characterId: string, at: Date): Promise<void>
  /** Whether an answer, or other work of the character itself, is queued, running or suspended; what jobs ask about it does not count. */
  hasLiveRun(characterId: string): Promise<boolean>
  /** Tombstones the character and its lorebooks. */
  remove(characterId: string, at: Date): Promise<void>
  /** Its cards, what they were made from, picture and lorebooks. */
  contentIds(characterId: string): Promise<string[]>
}

/** A book that a card brought, kept apart as a lorebook of the character; entries are normalised JSON texts. */
export type KeepBook = (input: {
  ownerId: string
  characterId: string
  sourceContentId: string
  book: {
    name: string | null
    settings: { scan_depth?: number; token_budget?: number; recursive?: boolean }
    entries: readonly string[]
  }
  fallbackName: string
}) => Promise<string>

/** What was remembered of a character is tombstoned, inside the deletion's unit of work. */
export type ForgetMemories = (ownerId: string, characterId: string) => Promise<void>

/** The named realm, or the owner's real one. Throws not_found. */
export type ResolveRealm = (ownerId: string, realmId: string | undefined) => Promise<{ id: string }>
