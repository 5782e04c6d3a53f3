/** Why migrations were not applied. Each leaves the database as it was, apart from migrations that were committed before. */

/** A migration that was applied has been edited since: what the database holds is not what the file says. */
export class ChangedMigrationError extends Error {
  override readonly name = 'ChangedMigrationError'
  readonly migration: string
  readonly applied: string
  readonly found: string

  constructor({ migration, applied, found }: { migration: string; applied: string; found: string }) {
    super(
      `migration ${migration} was changed after it was applied (checksum ${applied}, now ${found}); restore the file and add a new migration`,
    )
    this.migration = migration
    this.applied = applied
    this.found = found
  }
}

/** The database has migrations that this version does not know: it was written by a newer version, or files are missing. */
export class UnknownMigrationsError extends Error {
  override readonly name = 'UnknownMigrationsError'
  readonly migrations: readonly string[]

  constructor(migrations: readonly string[]) {
    super(
      `the database has migrations that are missing here: ${migrations.join(', ')}; start the version of Lingtai that applied them, or a newer one`,
    )
    this.migrations = migrations
  }
}

/** Another tool began a migration and did not finish it, so what the database holds is not known. */
export class UnfinishedMigrationError extends Error {
  override readonly name = 'UnfinishedMigrationError'
  readonly migration: string

  constructor(migration: string) {
    super(`migration ${migration} was begun and never finished; repair the database and settle it with "prisma migrate resolve"`)
    this.migration = migration
  }
}

/** A migration begins or ends transactions itself, which would commit it in part. */
export class MigrationTransactionError extends Error {
  override readonly name = 'MigrationTransactionError'
  readonly migration: string

  constructor(migration: string, statement: string) {
    super(
      `migration ${migration} contains ${statement.toUpperCase()}: each migration runs in one transaction that the runner opens and ends`,
    )
    this.migration = migration
  }
}

/** A migration's SQL failed; nothing of it was kept. */
export class MigrationFailedError extends Error {
  override readonly name = 'MigrationFailedError'
  readonly migration: string

  constructor(migration: string, cause: unknown) {
    super(`migration ${migration} failed and was rolled back: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.migration = migration
  }
}
