import { LingtaiError } from '#contracts'
import type { ImportedLorebook, LorebookView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { LorebookRow, LorebookSettings, LorebookStore } from './ports.ts'

/** A book as it was read from a file or out of a card. Each entry is its normalised form as JSON text. */
export type BookToKeep = { name: string | null; settings: LorebookSettings; entries: readonly string[] }

/** Reads a lorebook file. Throws LingtaiError invalid_file. */
export type ReadLorebook = (bytes: Uint8Array) => { book: BookToKeep; source: string; report: ImportedLorebook['report'] }

/** Longest name that the lorebooks table takes, in UTF-16 units; the whole one stays in the source text. */
const NAME_LENGTH = 400
const UNNAMED = 'Lorebook'

/** Lorebooks (世谱): imported and kept as immutable entry versions. */
export class LorebooksService {
  readonly #unit: UnitOfWork
  readonly #store: LorebookStore
  readonly #contents: ContentStore
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #read: ReadLorebook

  constructor(parts: { unit: UnitOfWork; store: LorebookStore; contents: ContentStore; clock: Clock; ids: Ids; read: ReadLorebook }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#contents = parts.contents
    this.#clock = parts.clock
    this.#ids = parts.ids
    this.#read = parts.read
  }

  async list(ownerId: string): Promise<LorebookView[]> {
    return (await this.#store.list(ownerId)).map(viewOf)
  }

  /** Keeps a stand-alone file, for one character or for all. Throws invalid_file, not_found (character_id). */
  async import(input: { ownerId: string; characterId: string | null; bytes: Uint8Array }): Promise<ImportedLorebook> {
    const { book, source, report } = this.#read(input.bytes)
    return this.#unit.run(async () => {
      if (input.characterId !== null && !(await this.#store.ownsCharacter(input.ownerId, input.characterId))) {
        throw new LingtaiError('not_found', undefined, { errors: [{ path: 'query.character_id', message: 'is no character of yours' }] })
      }
      const stored = await this.#contents.put({ owner_id: input.ownerId, media_type: 'application/json', content: source })
      const id = await this.keep({ ownerId: input.ownerId, characterId: input.characterId, sourceContentId: stored.id, book })
      return { lorebook: await this.#view(input.ownerId, id), report }
    })
  }

  /** The answer of an import once more: the report is read anew from the kept source. Throws not_found. */
  async describeImport(ownerId: string, lorebookId: string): Promise<ImportedLorebook> {
    const row = await this.#store.find(ownerId, lorebookId)
    if (!row) throw new LingtaiError('not_found')
    const source =
      row.source_content_id === null ? null : (await this.#contents.get([row.source_content_id])).get(row.source_content_id)?.body
    return { lorebook: viewOf(row), report: source ? this.#read(Buffer.from(source)).report : [] }
  }

  /** Writes a book, inside the caller's unit of work where there is one; answers its id. */
  async keep(input: {
    ownerId: string
    characterId: string | null
    sourceContentId: string
    book: BookToKeep
    fallbackName?: string
  }): Promise<string> {
    return this.#unit.run(async () => {
      const contentIds = await this.#contents.putMany(
        input.book.entries.map((entry) => ({
          owner_id: input.ownerId,
          media_type: 'application/json',
          content: entry,
          derived_from: [input.sourceContentId],
        })),
      )
      const id = this.#ids.next()
      await this.#store.insert({
        id,
        owner_id: input.ownerId,
        character_id: input.characterId,
        name: (input.book.name || input.fallbackName || UNNAMED).slice(0, NAME_LENGTH).toWellFormed(),
        source_content_id: input.sourceContentId,
        settings: input.book.settings,
        created_at: this.#clock.now(),
        entries: contentIds.map((content) => ({ id: this.#ids.next(), version_id: this.#ids.next(), content_id: content.id })),
      })
      return id
    })
  }

  async #view(ownerId: string, lorebookId: string): Promise<LorebookView> {
    const row = await this.#store.find(ownerId, lorebookId)
    if (!row) throw new LingtaiError('not_found')
    return viewOf(row)
  }
}

function viewOf(row: LorebookRow): LorebookView {
  return { id: row.id, name: row.name, character_id: row.character_id, entries: row.entries, created_at: row.created_at.toISOString() }
}
