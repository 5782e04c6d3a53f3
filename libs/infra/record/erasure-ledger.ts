import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { Id } from '#contracts'
import type { Database } from '../prisma/database.ts'
import { fileLines } from './file-lines.ts'

const LedgerEntry = z.object({ content_id: Id, owner_id: Id, cause: z.string().max(64), erased_at: z.string() })
export type LedgerEntry = z.infer<typeof LedgerEntry>

const PAGE = 5_000

/**
 * `LINGTAI_HOME/erasures.jsonl`: what was erased, by id, outside the database and apart from its backups. A restore applies it, so that an
 * archive from before an erasure does not bring the text back (decision 6).
 */
export class HomeErasureLedger {
  readonly path: string
  #known: Set<string> | undefined
  #keeping: Promise<unknown> = Promise.resolve()

  constructor(home: string) {
    this.path = join(home, 'erasures.jsonl')
  }

  read(): AsyncIterable<LedgerEntry> {
    return readLedger(this.path)
  }

  /** Writes down what the database erased and the file lacks. Calls wait for each other. Answers how many. */
  keep(database: Database): Promise<number> {
    const keeping = this.#keeping.catch(() => undefined).then(() => this.#keep(database)) // the one before told its own caller
    this.#keeping = keeping
    return keeping
  }

  async #keep(database: Database): Promise<number> {
    const known = (this.#known ??= await this.#ids())
    let written = 0
    for (let after = '00000000-0000-0000-0000-000000000000'; ;) {
      const page = await database.query<LedgerEntry>(
        `SELECT content_id, owner_id, cause, to_char(erased_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS erased_at
         FROM erasures WHERE content_id > $1::uuid ORDER BY content_id LIMIT $2`,
        [after, PAGE],
      )
      const fresh = page.filter((entry) => !known.has(entry.content_id))
      if (fresh.length > 0) await this.#append(fresh)
      for (const entry of fresh) known.add(entry.content_id)
      written += fresh.length
      const last = page.at(-1)
      if (!last || page.length < PAGE) return written
      after = last.content_id
    }
  }

  async #ids(): Promise<Set<string>> {
    const ids = new Set<string>()
    for await (const entry of this.read()) ids.add(entry.content_id)
    return ids
  }

  async #append(entries: readonly LedgerEntry[]): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 })
    const file = await open(this.path, 'a', 0o600)
    try {
      // The line break first: what a crash cut off stays a line of its own.
      await file.appendFile(entries.map((entry) => `\n${JSON.stringify(entry)}`).join(''))
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

/** The entries of a ledger's file; none where there is no file. Lines that a crash cut off are left out. */
export async function* readLedger(path: string): AsyncIterable<LedgerEntry> {
  for await (const line of fileLines(path)) {
    const entry = parseLine(line)
    if (entry) yield entry
  }
}

function parseLine(line: string): LedgerEntry | null {
  try {
    return LedgerEntry.parse(JSON.parse(line))
  } catch {
    return null // an empty line, or one that a crash cut off: it is written anew
  }
}
