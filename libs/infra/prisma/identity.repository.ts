import type { TokenScope } from '#contracts'
import type { CredentialRow, IdentityStore, NewToken, OwnerRow, TokenRow } from '#domains/identity/ports'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

const ownerColumns = { id: true, name: true, role: true, created_at: true } as const
const tokenColumns = { id: true, owner_id: true, name: true, scopes: true, created_at: true, last_used_at: true, revoked_at: true } as const

/** Owners, tokens, sign-in links and sessions in Postgres. Credentials are looked up on every request, so without Prisma's cost. */
export class IdentityRepository implements IdentityStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insertOwner(owner: OwnerRow): Promise<boolean> {
    const { count } = await this.#database.client.owners.createMany({ data: [owner], skipDuplicates: true })
    return count === 1
  }

  async owner(ownerId: string): Promise<OwnerRow | null> {
    return ownerRow(await this.#database.client.owners.findUnique({ where: { id: ownerId }, select: ownerColumns }))
  }

  async ownerByName(name: string): Promise<OwnerRow | null> {
    return ownerRow(await this.#database.client.owners.findUnique({ where: { name }, select: ownerColumns }))
  }

  async owners(): Promise<OwnerRow[]> {
    return this.#database.query<OwnerRow>('SELECT id, name, role, created_at FROM owners ORDER BY id')
  }

  async insertToken(token: NewToken): Promise<void> {
    const written = await this.#database.execute(
      'INSERT INTO tokens (id, owner_id, name, token_hash, scopes, created_at) VALUES ($1::uuid, $2::uuid, $3, $4, $5::text[], $6)',
      [token.id, token.owner_id, token.name, token.hash, token.scopes, token.created_at],
    )
    if (written !== 1) throw new RowCountError('insert token', 1, written)
  }

  async token(ownerId: string, tokenId: string): Promise<TokenRow | null> {
    const row = await this.#database.client.tokens.findFirst({ where: { id: tokenId, owner_id: ownerId }, select: tokenColumns })
    return row && { ...row, scopes: row.scopes as TokenScope[] }
  }

  async tokens(ownerId: string): Promise<TokenRow[]> {
    const rows = await this.#database.client.tokens.findMany({ where: { owner_id: ownerId }, orderBy: { id: 'asc' }, select: tokenColumns })
    return rows.map((row) => ({ ...row, scopes: row.scopes as TokenScope[] }))
  }

  async revokeToken({ ownerId, tokenId, at }: { ownerId: string; tokenId: string; at: Date }): Promise<boolean> {
    const { count } = await this.#database.client.tokens.updateMany({
      where: { id: tokenId, owner_id: ownerId, revoked_at: null },
      data: { revoked_at: at },
    })
    return count === 1
  }

  async credentialOfToken(hash: Uint8Array): Promise<CredentialRow | null> {
    const [row] = await this.#database.direct<CredentialRow>(
      `SELECT t.id, t.owner_id, o.name AS owner_name, o.role, t.scopes, t.last_used_at
       FROM tokens t JOIN owners o ON o.id = t.owner_id WHERE t.token_hash = $1 AND t.revoked_at IS NULL`,
      [hash],
    )
    return row ?? null
  }

  async touchToken(tokenId: string, at: Date): Promise<void> {
    await this.#database.client.tokens.updateMany({ where: { id: tokenId }, data: { last_used_at: at } })
  }

  async insertSigninLink(link: Parameters<IdentityStore['insertSigninLink']>[0]): Promise<void> {
    const written = await this.#database.execute(
      'INSERT INTO signin_links (id, owner_id, secret_hash, created_at, expires_at) VALUES ($1::uuid, $2::uuid, $3, $4, $5)',
      [link.id, link.owner_id, link.hash, link.created_at, link.expires_at],
    )
    if (written !== 1) throw new RowCountError('insert sign-in link', 1, written)
  }

  async useSigninLink(hash: Uint8Array, at: Date): Promise<string | null> {
    const [used] = await this.#database.query<{ owner_id: string }>(
      'UPDATE signin_links SET used_at = $2 WHERE secret_hash = $1 AND used_at IS NULL AND expires_at > $2 RETURNING owner_id',
      [hash, at],
    )
    return used?.owner_id ?? null
  }

  async insertSession(session: Parameters<IdentityStore['insertSession']>[0]): Promise<void> {
    const written = await this.#database.execute(
      'INSERT INTO sessions (id, owner_id, secret_hash, created_at, expires_at) VALUES ($1::uuid, $2::uuid, $3, $4, $5)',
      [session.id, session.owner_id, session.hash, session.created_at, session.expires_at],
    )
    if (written !== 1) throw new RowCountError('insert session', 1, written)
  }

  async credentialOfSession(hash: Uint8Array, at: Date): ReturnType<IdentityStore['credentialOfSession']> {
    const [row] = await this.#database.direct<Omit<CredentialRow, 'scopes' | 'last_used_at'>>(
      `SELECT s.id, s.owner_id, o.name AS owner_name, o.role
       FROM sessions s JOIN owners o ON o.id = s.owner_id WHERE s.secret_hash = $1 AND s.revoked_at IS NULL AND s.expires_at > $2`,
      [hash, at],
    )
    return row ?? null
  }

  async revokeSession(sessionId: string, at: Date): Promise<void> {
    await this.#database.client.sessions.updateMany({ where: { id: sessionId, revoked_at: null }, data: { revoked_at: at } })
  }

  async hasLiveSession(at: Date): Promise<boolean> {
    const [row] = await this.#database.query<{ live: boolean }>(
      'SELECT EXISTS (SELECT 1 FROM sessions WHERE revoked_at IS NULL AND expires_at > $1) AS live',
      [at],
    )
    return row?.live ?? false
  }

  async removeEnded(before: Date): Promise<void> {
    await this.#database.client.signin_links.deleteMany({ where: { expires_at: { lt: before } } })
    await this.#database.client.sessions.deleteMany({ where: { OR: [{ expires_at: { lt: before } }, { revoked_at: { lt: before } }] } })
  }
}

function ownerRow<Row extends { role: string }>(row: Row | null): (Row & { role: OwnerRow['role'] }) | null {
  return row && { ...row, role: row.role as OwnerRow['role'] }
}
