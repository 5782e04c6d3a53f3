import type { OwnerView } from '#contracts'
import type { OwnersService } from '#domains/identity/owners.service'
import type { Foundation } from './foundation.ts'

/** What a database must hold before anything else: the instance's own row and the first owner. Replicas may do it at once. */
export async function seed({ database, ids }: Foundation, owners: OwnersService): Promise<OwnerView> {
  await database.execute('INSERT INTO instance (id, instance_id) VALUES (1, $1::uuid) ON CONFLICT DO NOTHING', [ids.next()])
  return owners.ensureFirst()
}
