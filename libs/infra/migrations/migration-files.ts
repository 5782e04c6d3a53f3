/** Migrations as they lie on disk, in Prisma's folder format: `<14-digit time>_<name>/migration.sql`. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER_NAME = /^\d{14}_\w+$/

export interface MigrationFile {
  /** The folder's name, for example `20261129000000_create_core`. */
  readonly name: string
  readonly sql: string
  /** SHA-256 of the file's bytes, in hex, as Prisma computes it. */
  readonly checksum: string
}

/** A folder among the migrations that is none. */
export class MigrationFolderError extends Error {
  override readonly name = 'MigrationFolderError'
  readonly folder: string

  constructor(folder: string, reason: string) {
    super(`${folder} ${reason}`)
    this.folder = folder
  }
}

/** All migrations of a folder in the order in which they are applied. Throws MigrationFolderError. */
export function readMigrations(folder: string): MigrationFile[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => readMigration(folder, entry.name))
    .sort((left, right) => (left.name < right.name ? -1 : 1))
}

function readMigration(folder: string, name: string): MigrationFile {
  if (!FOLDER_NAME.test(name)) throw new MigrationFolderError(join(folder, name), 'is not named <14 digits>_<name>')
  const file = join(folder, name, 'migration.sql')
  if (!existsSync(file)) throw new MigrationFolderError(join(folder, name), 'has no migration.sql')
  const bytes = readFileSync(file)
  return { name, sql: bytes.toString('utf8'), checksum: createHash('sha256').update(bytes).digest('hex') }
}
