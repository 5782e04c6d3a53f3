/** People with a character and a tree each, since a character speaks to one tree at a time. */
import { randomBytes } from 'node:crypto'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { composeSystem } from '../../../apps/bff/composition/compose-system.ts'

export type Person = {
  token: string
  treeId: string
  /** Each question is asked below the greeting, so that every context is as long. */ parentId: string
}

export async function makePeople(environment: Record<string, string>, count: number): Promise<Person[]> {
  const system = await composeSystem({ config: loadConfig(environment), logger: createLogger('warn') })
  try {
    const people: Person[] = []
    for (let index = 0; index < count; index++) {
      const owner = await system.identity.owners.create({
        name: `bench-${index}-${randomBytes(4).toString('hex')}`,
        role: 'user',
        actor: 'system',
      })
      const { token } = await system.identity.tokens.create({
        ownerId: owner.id,
        name: 'bench',
        scopes: ['read', 'write'],
        grantable: new Set(['read', 'write']),
        actor: 'operator',
      })
      const { items } = await system.characters.list(owner.id, { after: null, limit: 1 })
      const character = items[0]
      if (token === null || !character) throw new Error('the person has no token or no character')
      const tree = await system.conversation.trees.create(owner.id, { character_id: character.id, zone: 'UTC' })
      people.push({ token, treeId: tree.id, parentId: tree.head_node_id })
    }
    return people
  } finally {
    await system.close()
  }
}
