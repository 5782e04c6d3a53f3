import type { SignedAnchor } from '#contracts'
import type { AnchorStore } from '#domains/record/anchor-ports'
import type { AnchoredHead } from '#kernel/record/anchor'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

/** One process at a time makes anchors; the number is ours alone. */
const CLAIM_KEY = 7_306_018

type AnchorRow = { seq: number; canonical: string; hash: Buffer; public_key: Buffer; signature: Buffer }

/** `anchors` and `anchor_heads` in Postgres (decision 18). */
export class AnchorRepository implements AnchorStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async claim(): Promise<boolean> {
    const [row] = await this.#database.query<{ claimed: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS claimed', [CLAIM_KEY])
    return row?.claimed === true
  }

  async instance(): Promise<{ id: string; epoch: number }> {
    const [row] = await this.#database.query<{ id: string; epoch: number }>(
      'SELECT instance_id AS id, cluster_epoch AS epoch FROM instance',
    )
    if (!row) throw new Error('the database has no instance')
    return row
  }

  async latest(): Promise<SignedAnchor | null> {
    const [row] = await this.#database.query<AnchorRow>(
      'SELECT seq, canonical, hash, public_key, signature FROM anchors ORDER BY seq DESC LIMIT 1',
    )
    return row ? anchorOf(row) : null
  }

  async list(after: number, limit: number): Promise<SignedAnchor[]> {
    const rows = await this.#database.query<AnchorRow>(
      'SELECT seq, canonical, hash, public_key, signature FROM anchors WHERE seq > $1 ORDER BY seq LIMIT $2',
      [after, limit],
    )
    return rows.map(anchorOf)
  }

  async hasNews(): Promise<boolean> {
    const [row] = await this.#database.query<{ news: boolean }>(`SELECT EXISTS (SELECT 1 FROM (${movedHeads}) m) AS news`)
    return row?.news === true
  }

  async cover(seq: number): Promise<void> {
    await this.#database.execute(
      `INSERT INTO anchor_heads (anchor_seq, stream, seq, hash) SELECT $1, m.stream, m.seq, m.hash FROM (${movedHeads}) m`,
      [seq],
    )
  }

  async heads(seq: number, after: string, limit: number): Promise<AnchoredHead[]> {
    return this.#database.query(
      `SELECT stream, seq, encode(hash, 'hex') AS hash FROM anchor_heads WHERE anchor_seq = $1 AND stream > $2 ORDER BY stream LIMIT $3`,
      [seq, after, limit],
    )
  }

  async insert(anchor: SignedAnchor): Promise<void> {
    const written = await this.#database.execute(
      'INSERT INTO anchors (seq, canonical, hash, public_key, signature) VALUES ($1, $2, $3, $4, $5)',
      [
        anchor.seq,
        anchor.canonical,
        Buffer.from(anchor.hash, 'hex'),
        Buffer.from(anchor.public_key, 'base64'),
        Buffer.from(anchor.signature, 'base64'),
      ],
    )
    if (written !== 1) throw new RowCountError('insert anchor', 1, written)
  }

  async unproven(seq: number): Promise<AnchoredHead[]> {
    return this.#database.query(
      `SELECT h.stream, h.seq, encode(h.hash, 'hex') AS hash
       FROM anchor_heads h LEFT JOIN events e ON e.stream = h.stream AND e.seq = h.seq
       WHERE h.anchor_seq = $1 AND e.hash IS DISTINCT FROM h.hash ORDER BY h.stream`,
      [seq],
    )
  }

  async lastRecorded(): Promise<number> {
    const [row] = await this.#database.query<{ last: number }>(
      `SELECT coalesce(max((e.payload ->> 'anchor')::bigint), 0) AS last
       FROM events e JOIN instance i ON e.stream = 'admin:' || i.instance_id WHERE e.type = 'anchor.signed'`,
    )
    return row?.last ?? 0
  }
}

/** Heads that are further than the anchor that covered them last. */
const movedHeads = `
SELECT s.stream, s.seq, s.hash FROM streams s
LEFT JOIN LATERAL (SELECT h.seq FROM anchor_heads h WHERE h.stream = s.stream ORDER BY h.anchor_seq DESC LIMIT 1) c ON true
WHERE s.seq > coalesce(c.seq, 0)`

function anchorOf(row: AnchorRow): SignedAnchor {
  return {
    seq: row.seq,
    canonical: row.canonical,
    hash: row.hash.toString('hex'),
    public_key: row.public_key.toString('base64'),
    signature: row.signature.toString('base64'),
  }
}
