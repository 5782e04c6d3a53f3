import type { NewNoteVersion, NoteKey, NoteLine, NoteRow, NoteScope, NoteStore } from '#domains/tools/ports'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

const versions = `SELECT n.id, n.number, v.version, n.current_version, v.content_id IS NULL AS deleted, v.content_id, c.body AS text, v.trust, v.created_at
  FROM notes n
  JOIN note_versions v ON v.note_id = n.id
  LEFT JOIN contents c ON c.id = v.content_id
  WHERE n.owner_id = $1::uuid AND n.character_id = $2::uuid AND n.realm_id = $3::uuid`

const scopeOf = ({ ownerId, characterId, realmId }: NoteScope): [string, string, string] => [ownerId, characterId, realmId]

/** Notes in Postgres. */
export class NotesRepository implements NoteStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  list(scope: NoteScope): Promise<NoteLine[]> {
    const living = `SELECT n.number, v.version, v.content_id, v.trust, v.created_at, left(c.body, 120) AS beginning, coalesce(length(c.body), 0) AS characters
      FROM notes n
      JOIN note_versions v ON v.note_id = n.id AND v.version = n.current_version
      JOIN contents c ON c.id = v.content_id
      WHERE n.owner_id = $1::uuid AND n.character_id = $2::uuid AND n.realm_id = $3::uuid
      ORDER BY n.number`
    return this.#database.query<NoteLine>(living, scopeOf(scope))
  }

  async countLiving(scope: NoteScope): Promise<number> {
    const [row] = await this.#database.query<{ notes: number }>(
      `SELECT count(*)::int AS notes
       FROM notes n
       JOIN note_versions v ON v.note_id = n.id AND v.version = n.current_version
       WHERE n.owner_id = $1::uuid AND n.character_id = $2::uuid AND n.realm_id = $3::uuid AND v.content_id IS NOT NULL`,
      scopeOf(scope),
    )
    return row?.notes ?? 0
  }

  async find(scope: NoteScope, number: number, version: number | null): Promise<NoteRow | null> {
    const one = `${versions} AND n.number = $4::int AND v.version = coalesce($5::int, n.current_version)`
    const [row] = await this.#database.query<NoteRow>(one, [...scopeOf(scope), number, version])
    return row ?? null
  }

  async lockCharacter(ownerId: string, characterId: string): Promise<boolean> {
    const found = await this.#database.query('SELECT id FROM characters WHERE owner_id = $1::uuid AND id = $2::uuid FOR NO KEY UPDATE', [
      ownerId,
      characterId,
    ])
    return found.length === 1
  }

  async lastNumber(scope: NoteScope): Promise<number> {
    const [row] = await this.#database.query<{ last: number }>(
      `SELECT coalesce(max(number), 0)::int AS last FROM notes WHERE owner_id = $1::uuid AND character_id = $2::uuid AND realm_id = $3::uuid`,
      scopeOf(scope),
    )
    return row?.last ?? 0
  }

  async insert(scope: NoteScope, note: { id: string; number: number }, first: NewNoteVersion): Promise<void> {
    await this.#database.execute(
      `INSERT INTO notes (id, owner_id, character_id, realm_id, number, current_version, created_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::int, 1, $6::timestamptz)`,
      [note.id, ...scopeOf(scope), note.number, first.at],
    )
    await this.#insertVersion(scope.ownerId, first)
  }

  async addVersion(scope: NoteScope, next: NewNoteVersion): Promise<void> {
    await this.#insertVersion(scope.ownerId, next)
    const moved = await this.#database.execute(
      'UPDATE notes SET current_version = $3::int WHERE owner_id = $1::uuid AND id = $2::uuid AND current_version = $3::int - 1',
      [scope.ownerId, next.noteId, next.version],
    )
    if (moved !== 1) throw new RowCountError('notes', 1, moved)
  }

  async key(ownerId: string, key: string): Promise<NoteKey | null> {
    const [row] = await this.#database.query<NoteKey>(
      `SELECT encode(k.arguments_hash, 'hex') AS "argumentsHash", n.number, k.version, v.trust, v.content_id IS NULL AS deleted
       FROM note_keys k
       JOIN notes n ON n.id = k.note_id
       JOIN note_versions v ON v.note_id = k.note_id AND v.version = k.version
       WHERE k.owner_id = $1::uuid AND k.key = $2`,
      [ownerId, key],
    )
    return row ?? null
  }

  async insertKey(row: Parameters<NoteStore['insertKey']>[0]): Promise<void> {
    await this.#database.execute(
      `INSERT INTO note_keys (owner_id, key, arguments_hash, note_id, version, created_at)
       VALUES ($1::uuid, $2, decode($3, 'hex'), $4::uuid, $5::int, $6::timestamptz)`,
      [row.ownerId, row.key, row.argumentsHash, row.noteId, row.version, row.at],
    )
  }

  async #insertVersion(ownerId: string, version: NewNoteVersion): Promise<void> {
    await this.#database.execute(
      `INSERT INTO note_versions (note_id, version, owner_id, content_id, trust, run_id, created_at)
       VALUES ($1::uuid, $2::int, $3::uuid, $4::uuid, $5, $6::uuid, $7::timestamptz)`,
      [version.noteId, version.version, ownerId, version.contentId, version.trust, version.runId, version.at],
    )
  }
}
