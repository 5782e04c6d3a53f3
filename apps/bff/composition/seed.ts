import type { OwnerView } from '#contracts'
import type { OwnersService } from '#domains/identity/owners.service'
import type { Foundation } from './foundation.ts'

/** The instance's own row, without which nothing can be recorded. Replicas may do it at once. */
export async function seedInstance({ database, ids }: Foundation): Promise<void> {
  await database.execute('INSERT INTO instance (id, instance_id) VALUES (1, $1::uuid) ON CONFLICT DO NOTHING', [ids.next()])
}

/** The first owner. Replicas may do it at once. */
export async function seed(owners: OwnersService): Promise<OwnerView> {
  return owners.ensureFirst()
}
