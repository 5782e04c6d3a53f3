import { FIXTURE_MIGRATIONS, openTestDatabase } from '../support/light-database.ts'
import { describeMigrations } from '../support/migration-suite.ts'

describeMigrations('light', () => openTestDatabase({ migrations: FIXTURE_MIGRATIONS }))
