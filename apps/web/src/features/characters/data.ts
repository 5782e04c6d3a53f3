import type { CharacterView, TreeView } from '#contracts'
import type { Page } from '../../api/endpoints.ts'
import { characterApi, treeApi } from '../../api/endpoints.ts'
import type { Resource } from '../../store/resource.ts'
import { invalidate, put, useResource } from '../../store/resource.ts'
import { navigate, paths } from '../../routing/router.tsx'

export function useCharacters(): Resource<Page<CharacterView>> {
  return useResource('characters', characterApi.list)
}

/** One character: from the list where it stands there, else read by itself. */
export function useCharacter(id: string | null): Resource<CharacterView> {
  return useResource(id === null ? null : `character:${id}`, () => characterApi.read(id ?? ''))
}

/** The newest conversations over all characters. */
export function useTrees(): Resource<Page<TreeView>> {
  return useResource('trees:all', () => treeApi.list())
}

export function useTreesOf(characterId: string | null): Resource<Page<TreeView>> {
  return useResource(characterId === null ? null : `trees:of:${characterId}`, () => treeApi.list({ character_id: characterId }))
}

export function useTree(id: string | null): Resource<TreeView> {
  return useResource(id === null ? null : `tree:${id}`, async () => (await treeApi.path(id ?? '', { limit: 1 })).tree)
}

/** The reader's own IANA zone, stored with each question (decision 42). */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
}

type NewConversation = { characterId: string; title?: string; realmId?: string; personaVersionId?: string }

/** Makes a tree and goes there. */
export async function startConversation({ characterId, title, realmId, personaVersionId }: NewConversation): Promise<void> {
  const tree = await treeApi.create({
    character_id: characterId,
    zone: ownZone(),
    ...(title === undefined || title.trim() === '' ? {} : { title: title.trim() }),
    ...(realmId === undefined ? {} : { realm_id: realmId }),
    ...(personaVersionId === undefined ? {} : { user_persona_version_id: personaVersionId }),
  })
  put(`tree:${tree.id}`, tree)
  invalidate('trees:')
  navigate(paths.tree(tree.id))
}
