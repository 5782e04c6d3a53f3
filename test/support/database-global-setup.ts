/** Makes the snapshots before the first test of a run, where no time limit of a test or hook applies. */
import { databaseSnapshot } from './database-snapshot.ts'
import { FIXTURE_MIGRATIONS, PROJECT_MIGRATIONS } from './light-database.ts'

export default async function makeSnapshots(): Promise<void> {
  await databaseSnapshot(PROJECT_MIGRATIONS)
  await databaseSnapshot(FIXTURE_MIGRATIONS)
}
