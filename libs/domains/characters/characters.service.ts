import { LingtaiError } from '#contracts'
import type { CharacterVersionView, CharacterView, CreateCharacter, CreateCharacterVersion, ImportedCharacter } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { contentDigest } from '#kernel/record/chain'
import { CardShelf } from './card-shelf.ts'
import { exportCard, parseCard } from './cards/index.ts'
import type { CardFormat, ParsedCard } from './cards/index.ts'
import { characterView, editsOf, nameLabel } from './character-view.ts'
import { keepableBook } from './keepable-book.ts'
import type { CharacterRow, CharacterStore, ForgetMemories, KeepBook, ResolveRealm } from './ports.ts'
import { refusingCards } from './refuse-card.ts'

export type CharactersServiceParts = {
  unit: UnitOfWork
  store: CharacterStore
  contents: ContentStore
  log: EventLog
  clock: Clock
  ids: Ids
  keepBook: KeepBook
  forgetMemories: ForgetMemories
  resolveRealm: ResolveRealm
}

type CardToWrite = {
  ownerId: string
  realmId?: string
  parsed: ParsedCard
  /** The file as it came, where that is not the card's own text. */
  original?: { media_type: string; content: Uint8Array; isAvatar: boolean }
  origin: 'import' | 'authored'
  accepted: boolean
  demo: boolean
  tag: string
}

/** Characters: cards in, cards out, and what is in between (cases C2–C6). */
export class CharactersService {
  readonly #parts: CharactersServiceParts
  readonly #shelf: CardShelf

  constructor(parts: CharactersServiceParts) {
    this.#parts = parts
    this.#shelf = new CardShelf(parts.contents)
  }

  /** Oldest first; the cursor is the last one's id. */
  async list(
    ownerId: string,
    page: { limit: number; after: string | null },
  ): Promise<{ items: CharacterView[]; next_cursor: string | null }> {
    const rows = await this.#parts.store.list(ownerId, { after: page.after, limit: page.limit + 1 })
    const shown = rows.slice(0, page.limit)
    return { items: await this.#views(shown), next_cursor: rows.length > page.limit ? (shown.at(-1)?.id ?? null) : null }
  }

  /** Throws not_found. */
  async read(ownerId: string, characterId: string): Promise<CharacterView> {
    return this.#view(await this.#row(ownerId, characterId))
  }

  /** Throws not_found (realm_id). */
  async create(ownerId: string, { realm_id: realmId, ...fields }: CreateCharacter): Promise<CharacterView> {
    const parsed = refusingCards(() => parseCard(exportCard({ edits: editsOf(fields) }, 'json-v3')))
    return this.#write({ ownerId, realmId, parsed, origin: 'authored', accepted: true, demo: false, tag: 'character.create' })
  }

  /** A card that this project wrote itself, as a new owner's first character. */
  async createDemo(ownerId: string, card: Uint8Array): Promise<CharacterView> {
    return this.#write({ ownerId, parsed: parseCard(card), origin: 'authored', accepted: true, demo: true, tag: 'character.demo' })
  }

  /** Untrusted until the owner has seen and accepted it (K1). Throws invalid_file, payload_too_large. */
  async import(ownerId: string, bytes: Uint8Array): Promise<ImportedCharacter> {
    const parsed = refusingCards(() => parseCard(bytes))
    const isExact = Buffer.from(parsed.source).equals(bytes)
    const character = await this.#write({
      ownerId,
      parsed,
      original: isExact
        ? undefined
        : { media_type: parsed.avatar ? 'image/png' : 'application/octet-stream', content: bytes, isAvatar: parsed.avatar !== undefined },
      origin: 'import',
      accepted: false,
      demo: false,
      tag: 'character.import',
    })
    return { character, format: parsed.format, spec_version: parsed.specVersion, report: parsed.report }
  }

  /** The answer of an import once more: the report is read anew from the kept file. Throws not_found. */
  async describeImport(ownerId: string, characterId: string): Promise<ImportedCharacter> {
    const row = await this.#row(ownerId, characterId)
    const contents = await this.#parts.contents.get([
      row.card_content_id,
      ...(row.avatar_content_id === null ? [] : [row.avatar_content_id]),
    ])
    const file =
      (row.avatar_content_id === null ? null : contents.get(row.avatar_content_id)?.bytes) ?? contents.get(row.card_content_id)?.body
    if (file === null || file === undefined) throw new LingtaiError('not_found')
    const { format, specVersion, report } = parseCard(typeof file === 'string' ? Buffer.from(file) : file)
    return { character: await this.#view(row), format, spec_version: specVersion, report }
  }

  /** From here on the text counts as the owner's (K1). Accepting twice is the same as once. Throws not_found. */
  async accept(ownerId: string, characterId: string): Promise<CharacterView> {
    const { unit, store, log, clock } = this.#parts
    return unit.run(async () => {
      const row = await this.#lock(ownerId, characterId)
      if (row.accepted_at !== null) return this.#view(row)
      const at = clock.now()
      await store.accept(characterId, at)
      await log.append({
        stream: `character:${characterId}`,
        ownerId,
        events: [
          {
            type: 'character.accepted',
            payload: { persona_version_id: row.persona_version_id },
            character_id: characterId,
            actor: 'owner',
            at: at.toISOString(),
            cause: { tag: 'character.accept' },
          },
        ],
      })
      return this.#view({ ...row, accepted_at: at })
    })
  }

  /**
   * Tombstones the character and its memories and erases its cards, picture and lorebooks, all or nothing of it; its trees stay. Throws
   * not_found, wrong_state while an answer of it is under way.
   */
  async remove(ownerId: string, characterId: string): Promise<void> {
    const { unit, store, contents, log, clock, forgetMemories } = this.#parts
    await unit.run(async () => {
      // An extraction that stores now holds the row too: it is over before, or finds the character gone.
      await this.#lock(ownerId, characterId)
      if (await store.hasLiveRun(characterId))
        throw new LingtaiError('wrong_state', 'The character is answering, or an answer of it waits: stop that first.')
      const at = clock.now()
      // First, since memories are locked before the record's streams.
      await forgetMemories(ownerId, characterId)
      await store.remove(characterId, at)
      await log.append({
        stream: `character:${characterId}`,
        ownerId,
        events: [
          {
            type: 'character.deleted',
            payload: {},
            character_id: characterId,
            actor: 'owner',
            at: at.toISOString(),
            cause: { tag: 'character.delete' },
          },
        ],
      })
      this.#shelf.forget(await contents.erase({ ids: await store.contentIds(characterId), cause: 'character_deleted' }))
    })
  }

  /** The picture's own bytes (decision 40). Throws not_found where there is none. */
  async avatar(ownerId: string, characterId: string): Promise<{ contentId: string; bytes: Uint8Array }> {
    const { avatar_content_id: contentId } = await this.#row(ownerId, characterId)
    const bytes = contentId === null ? null : (await this.#parts.contents.get([contentId])).get(contentId)?.bytes
    if (contentId === null || !bytes) throw new LingtaiError('not_found', 'The character has no picture.')
    return { contentId, bytes }
  }

  /** The card as a file: unknown fields kept, unchanged parts byte for byte (case C4). Throws not_found, payload_too_large. */
  async export(ownerId: string, characterId: string, format: CardFormat): Promise<{ name: string; bytes: Uint8Array }> {
    const row = await this.#row(ownerId, characterId)
    const source = await this.#source(row)
    const avatar = format === 'png' && row.avatar_content_id !== null ? await this.avatar(ownerId, characterId) : undefined
    const bytes = refusingCards(() => exportCard({ source, avatarPng: avatar?.bytes }, format))
    return { name: parseCard(Buffer.from(source)).card.name, bytes }
  }

  /** Newest first. Throws not_found. */
  async versions(ownerId: string, characterId: string): Promise<CharacterVersionView[]> {
    await this.#row(ownerId, characterId)
    const versions = await this.#parts.store.versions(characterId)
    return versions.map((version) => ({ ...version, created_at: version.created_at.toISOString() }))
  }

  /** A new version with the named fields changed; with nothing changed there is none. Throws not_found, payload_too_large. */
  async addVersion(ownerId: string, characterId: string, fields: CreateCharacterVersion): Promise<CharacterView> {
    const { unit, store, contents, log, clock, ids } = this.#parts
    return unit.run(async () => {
      const row = await this.#lock(ownerId, characterId)
      const source = await this.#source(row)
      const before = parseCard(Buffer.from(source))
      const text = refusingCards(() => {
        const bytes = exportCard({ source, edits: editsOf(fields) }, before.specVersion === 'v3' ? 'json-v3' : 'json-v2')
        return Buffer.from(bytes).toString('utf8')
      })
      const after = parseCard(Buffer.from(text))
      if (JSON.stringify(after.card) === JSON.stringify(before.card)) return this.#view(row)
      const at = clock.now()
      const content = await contents.put({
        owner_id: ownerId,
        media_type: 'application/json',
        content: text,
        derived_from: [row.card_content_id],
      })
      const version = {
        id: ids.next(),
        owner_id: ownerId,
        character_id: characterId,
        version: row.version + 1,
        card_content_id: content.id,
        origin: 'authored' as const,
        created_at: at,
      }
      await store.addVersion(version, nameLabel(after.card))
      await log.append({
        stream: `character:${characterId}`,
        ownerId,
        events: [
          {
            type: 'character.versioned',
            payload: { persona_version_id: version.id, card_content_id: content.id },
            character_id: characterId,
            actor: 'owner',
            trust: row.accepted_at === null ? 'untrusted' : 'workspace',
            at: at.toISOString(),
            cause: { tag: 'character.version' },
            content_digests: [contentDigest(content.id, content.digest)],
          },
        ],
      })
      return this.#view({ ...row, version: version.version, persona_version_id: version.id, card_content_id: content.id })
    })
  }

  async #write(input: CardToWrite): Promise<CharacterView> {
    const { unit, store, contents, log, clock, ids, keepBook, resolveRealm } = this.#parts
    const { ownerId, parsed, original } = input
    return unit.run(async () => {
      const realm = await resolveRealm(ownerId, input.realmId)
      const at = clock.now()
      const id = ids.next()
      const versionId = ids.next()
      const kept = original && (await contents.put({ owner_id: ownerId, media_type: original.media_type, content: original.content }))
      const card = await contents.put({
        owner_id: ownerId,
        media_type: 'application/json',
        content: parsed.source,
        derived_from: kept ? [kept.id] : [],
      })
      await store.insert(
        {
          id,
          owner_id: ownerId,
          name: nameLabel(parsed.card),
          realm_id: realm.id,
          avatar_content_id: kept && original?.isAvatar ? kept.id : null,
          demo: input.demo,
          accepted_at: input.accepted ? at : null,
          created_at: at,
        },
        {
          id: versionId,
          owner_id: ownerId,
          character_id: id,
          version: 1,
          card_content_id: card.id,
          origin: input.origin,
          created_at: at,
        },
      )
      if (parsed.card.book) {
        await keepBook({
          ownerId,
          characterId: id,
          sourceContentId: card.id,
          book: keepableBook(parsed.card.book),
          fallbackName: parsed.card.name,
        })
      }
      await log.append({
        stream: `character:${id}`,
        ownerId,
        events: [
          {
            type: 'character.created',
            payload: { persona_version_id: versionId, card_content_id: card.id },
            character_id: id,
            actor: input.demo ? 'system' : 'owner',
            trust: input.accepted ? 'workspace' : 'untrusted',
            at: at.toISOString(),
            cause: { tag: input.tag },
            content_digests: [...(kept ? [contentDigest(kept.id, kept.digest)] : []), contentDigest(card.id, card.digest)],
          },
        ],
      })
      return this.read(ownerId, id)
    })
  }

  async #row(ownerId: string, characterId: string): Promise<CharacterRow> {
    const row = await this.#parts.store.find(ownerId, characterId)
    if (!row) throw new LingtaiError('not_found')
    return row
  }

  async #lock(ownerId: string, characterId: string): Promise<CharacterRow> {
    const row = await this.#parts.store.lock(ownerId, characterId)
    if (!row) throw new LingtaiError('not_found')
    return row
  }

  async #source(row: CharacterRow): Promise<string> {
    const source = (await this.#parts.contents.get([row.card_content_id])).get(row.card_content_id)?.body
    if (!source) throw new LingtaiError('not_found', 'The card was erased.')
    return source
  }

  async #views(rows: readonly CharacterRow[]): Promise<CharacterView[]> {
    const cards = await this.#shelf.read(rows.map((row) => row.card_content_id))
    return rows.flatMap((row) => {
      const card = cards.get(row.card_content_id)
      return card ? [characterView(row, card)] : []
    })
  }

  async #view(row: CharacterRow): Promise<CharacterView> {
    const [view] = await this.#views([row])
    if (!view) throw new LingtaiError('not_found', 'The card was erased.')
    return view
  }
}
