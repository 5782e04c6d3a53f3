import type { ContentStore } from '#kernel/ports/content-store'
import type { PersonaSource, UserPersonaSource } from '#runtime/prompt/persona-entities'
import { CardShelf } from './card-shelf.ts'

export type PinnedPersona = { cardContentId: string; accepted: boolean; deleted: boolean; realmId: string }
export type PinnedUserPersona = { name: string; descriptionContentId: string | null }

/** Persona versions as runs and trees pin them. */
export interface PersonaVersions {
  current(ownerId: string, characterId: string): Promise<{ versionId: string; realmId: string } | null>
  pinned(ownerId: string, characterId: string, versionId: string): Promise<PinnedPersona | null>
  user(ownerId: string, versionId: string): Promise<PinnedUserPersona | null>
  realmExists(ownerId: string, realmId: string): Promise<boolean>
}

/** The pinned version is not there, or its card is erased. */
export class PersonaGoneError extends Error {
  constructor(characterId: string) {
    super(`the persona of character ${characterId} is gone`)
    this.name = 'PersonaGoneError'
  }
}

/** What {{user}} stands for where the tree pins no persona. */
const NAMELESS_USER = 'User'

/** The characters' side of a prompt and of a new tree: cards by pinned version, with the trust that the owner gave them (K1). */
export class PersonaReader {
  readonly #versions: PersonaVersions
  readonly #contents: ContentStore
  readonly #shelf: CardShelf

  constructor({ versions, contents }: { versions: PersonaVersions; contents: ContentStore }) {
    this.#versions = versions
    this.#contents = contents
    this.#shelf = new CardShelf(contents)
  }

  async currentVersion(ownerId: string, characterId: string): Promise<string> {
    const current = await this.#versions.current(ownerId, characterId)
    if (!current) throw new PersonaGoneError(characterId)
    return current.versionId
  }

  async persona(ownerId: string, characterId: string, versionId: string): Promise<PersonaSource> {
    const pinned = await this.#versions.pinned(ownerId, characterId, versionId)
    const card = pinned && (await this.#shelf.read([pinned.cardContentId])).get(pinned.cardContentId)
    if (!pinned || !card) throw new PersonaGoneError(characterId)
    return {
      versionId,
      contentId: pinned.cardContentId,
      trust: pinned.accepted ? 'workspace' : 'untrusted',
      card: {
        name: card.name,
        nickname: card.nickname,
        description: card.description,
        personality: card.personality,
        scenario: card.scenario,
        exampleMessages: card.exampleMessages,
        systemPrompt: card.systemPrompt,
        postHistoryInstructions: card.postHistoryInstructions,
        firstMessage: card.firstMessage,
        creatorNotes: card.creatorNotes,
        characterVersion: card.characterVersion,
      },
    }
  }

  async user(ownerId: string, versionId: string | null): Promise<UserPersonaSource> {
    const pinned = versionId === null ? null : await this.#versions.user(ownerId, versionId)
    if (!pinned) return { versionId: null, contentId: null, trust: 'workspace', name: NAMELESS_USER, description: '' }
    const contentId = pinned.descriptionContentId
    const description = contentId === null ? undefined : (await this.#contents.get([contentId])).get(contentId)
    return { versionId, contentId, trust: 'workspace', name: pinned.name, description: description?.body ?? '' }
  }

  /** A new tree's greetings; null for an unknown or deleted character. */
  async greetings(ownerId: string, characterId: string): Promise<{ name: string; realmId: string; greetings: string[] } | null> {
    const current = await this.#versions.current(ownerId, characterId)
    if (!current) return null
    const { card } = await this.persona(ownerId, characterId, current.versionId)
    const cardContentId = (await this.#versions.pinned(ownerId, characterId, current.versionId))?.cardContentId ?? ''
    const full = (await this.#shelf.read([cardContentId])).get(cardContentId)
    return {
      name: card.nickname !== undefined && card.nickname.trim() !== '' ? card.nickname : card.name,
      realmId: current.realmId,
      greetings: [full?.firstMessage ?? '', ...(full?.alternateGreetings ?? [])],
    }
  }

  realmExists(ownerId: string, realmId: string): Promise<boolean> {
    return this.#versions.realmExists(ownerId, realmId)
  }

  async personaVersionExists(ownerId: string, versionId: string): Promise<boolean> {
    return (await this.#versions.user(ownerId, versionId)) !== null
  }

  async userName(ownerId: string, versionId: string | null): Promise<string> {
    return (await this.user(ownerId, versionId)).name
  }
}
