import type { CharacterView, CreateCharacterVersion } from '#contracts'
import type { CardEdits, NormalisedCard } from './cards/index.ts'
import type { CharacterRow } from './ports.ts'

/** What the owner sees of a character: its card in plain fields, and where it stands. */
export function characterView(row: CharacterRow, card: NormalisedCard): CharacterView {
  return {
    id: row.id,
    name: card.name,
    nickname: card.nickname ?? null,
    description: card.description,
    personality: card.personality,
    scenario: card.scenario,
    first_message: card.firstMessage,
    alternate_greetings: card.alternateGreetings,
    system_prompt: card.systemPrompt,
    post_history_instructions: card.postHistoryInstructions,
    creator_notes: card.creatorNotes,
    tags: card.tags,
    realm: { id: row.realm_id, kind: row.realm_kind, name: row.realm_name },
    has_avatar: row.avatar_content_id !== null,
    demo: row.demo,
    trust: row.accepted_at === null ? 'untrusted' : 'workspace',
    accepted: row.accepted_at !== null,
    version: row.version,
    persona_version_id: row.persona_version_id,
    lore_entries: row.lore_entries,
    created_at: row.created_at.toISOString(),
  }
}

/** The fields that a person wrote, as edits of a card; absent ones stay as they are. */
export function editsOf(fields: CreateCharacterVersion): CardEdits {
  return {
    name: fields.name,
    description: fields.description,
    personality: fields.personality,
    scenario: fields.scenario,
    firstMessage: fields.first_message,
    alternateGreetings: fields.alternate_greetings,
    exampleMessages: fields.example_messages,
    systemPrompt: fields.system_prompt,
    postHistoryInstructions: fields.post_history_instructions,
    creatorNotes: fields.creator_notes,
    tags: fields.tags,
  }
}

/** Longest name that the characters table takes, in UTF-16 units. */
const NAME_LENGTH = 400

/** The label under which a character is listed in the database; the card keeps the exact name (case C5). */
export function nameLabel(card: NormalisedCard): string {
  return card.name.slice(0, NAME_LENGTH).toWellFormed()
}
