import { z } from 'zod'
import { Trust } from '../enums.ts'
import { Id } from '../ids.ts'
import { pageOf } from './common.ts'

export const CharacterView = z
  .object({
    id: Id,
    name: z.string(),
    nickname: z.string().nullable(),
    description: z.string(),
    personality: z.string(),
    scenario: z.string(),
    first_message: z.string(),
    alternate_greetings: z.array(z.string()),
    system_prompt: z.string(),
    post_history_instructions: z.string(),
    creator_notes: z.string(),
    tags: z.array(z.string()),
    realm: z.object({ id: Id, kind: z.string(), name: z.string() }),
    has_avatar: z.boolean(),
    demo: z.boolean(),
    /** untrusted until the owner accepted the imported text (K1). */
    trust: Trust,
    accepted: z.boolean(),
    version: z.int(),
    persona_version_id: Id,
    lore_entries: z.int(),
    created_at: z.string(),
  })
  .meta({ id: 'Character' })
export type CharacterView = z.infer<typeof CharacterView>

export const CharacterPage = pageOf(CharacterView, 'CharacterPage')

const cardText = z.string().max(200_000)

/** Fields a person may write; absent = unchanged on a new version, empty on creation. */
export const CharacterFields = z.object({
  name: z.string().trim().min(1).max(400),
  description: cardText.optional(),
  personality: cardText.optional(),
  scenario: cardText.optional(),
  first_message: cardText.optional(),
  alternate_greetings: z.array(cardText).max(50).optional(),
  example_messages: cardText.optional(),
  system_prompt: cardText.optional(),
  post_history_instructions: cardText.optional(),
  creator_notes: cardText.optional(),
  tags: z.array(z.string().max(100)).max(100).optional(),
})
export const CreateCharacter = CharacterFields.extend({ realm_id: Id.optional() }).meta({ id: 'CreateCharacter' })
export type CreateCharacter = z.infer<typeof CreateCharacter>
export const CreateCharacterVersion = CharacterFields.partial().meta({ id: 'CreateCharacterVersion' })
export type CreateCharacterVersion = z.infer<typeof CreateCharacterVersion>

export const ImportReport = z.array(z.object({ path: z.string(), code: z.string(), message: z.string() }))
export const ImportedCharacter = z
  .object({ character: CharacterView, format: z.enum(['json', 'png']), spec_version: z.enum(['v1', 'v2', 'v3']), report: ImportReport })
  .meta({ id: 'ImportedCharacter' })
export type ImportedCharacter = z.infer<typeof ImportedCharacter>

export const ExportFormat = z.enum(['json-v2', 'json-v3', 'png'])

export const CharacterVersionView = z
  .object({ id: Id, version: z.int(), origin: z.enum(['import', 'authored', 'recast']), created_at: z.string(), current: z.boolean() })
  .meta({ id: 'CharacterVersion' })
export type CharacterVersionView = z.infer<typeof CharacterVersionView>

export const RealmView = z.object({ id: Id, kind: z.string(), name: z.string() }).meta({ id: 'Realm' })
export type RealmView = z.infer<typeof RealmView>
export const CreateRealm = z
  .object({
    kind: z
      .string()
      .regex(/^[a-z_]{1,40}$/)
      .refine((kind) => kind !== 'real', 'the real realm exists already'),
    name: z.string().trim().min(1).max(120),
  })
  .meta({ id: 'CreateRealm' })
export type CreateRealm = z.infer<typeof CreateRealm>

export const UserPersonaView = z.object({ id: Id, version_id: Id, name: z.string(), description: z.string() }).meta({ id: 'UserPersona' })
export type UserPersonaView = z.infer<typeof UserPersonaView>
export const CreateUserPersona = z
  .object({ name: z.string().trim().min(1).max(120), description: cardText.default('') })
  .meta({ id: 'CreateUserPersona' })
export type CreateUserPersona = z.infer<typeof CreateUserPersona>

export const LorebookView = z
  .object({ id: Id, name: z.string(), character_id: Id.nullable(), entries: z.int(), created_at: z.string() })
  .meta({ id: 'Lorebook' })
export type LorebookView = z.infer<typeof LorebookView>
export const ImportedLorebook = z.object({ lorebook: LorebookView, report: ImportReport }).meta({ id: 'ImportedLorebook' })
export type ImportedLorebook = z.infer<typeof ImportedLorebook>
