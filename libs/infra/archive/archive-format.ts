import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { z } from 'zod'
import { Digest, Id, Instant } from '#contracts'

/**
 * An archive is JSON lines in UTF-8: a header; for each table a line that names its columns, then one array of texts per row, in the order
 * of the primary key; an end that says how many lines there were and the SHA-256 of all bytes before it (decision 6).
 * Values are what PostgreSQL prints for them in UTC, bytes in base64, NULL null.
 */
export const ArchiveHeader = z.object({
  lingtai_archive: z.literal(1),
  /** Migrations of the database that it comes from, oldest first. */
  migrations: z.array(z.string()),
  instance_id: Id,
  cluster_epoch: z.int().min(1),
  created_at: Instant,
  /** `table.column` → the last number that was given out. */
  sequences: z.record(z.string(), z.int().min(0)),
})
export type ArchiveHeader = z.infer<typeof ArchiveHeader>

export const ArchiveTable = z.object({ table: z.string(), columns: z.array(z.string()).min(1) })
export const ArchiveRow = z.array(z.string().nullable())
export const ArchiveEnd = z.object({ end: z.object({ lines: z.int(), sha256: Digest }) })

/** A file is no archive that can be read, or not the one that was written. Nothing was changed. */
export class ArchiveDamagedError extends Error {
  override readonly name = 'ArchiveDamagedError'

  constructor(path: string, reason: string) {
    super(`${path} cannot be restored: ${reason}. Nothing was changed`)
  }
}

/** An archive of a newer Lingtai, or of a version of the format that is not known here. */
export class ArchiveVersionError extends Error {
  override readonly name = 'ArchiveVersionError'

  constructor(path: string, reason: string) {
    super(`${path} is not for this version of Lingtai: ${reason}. Nothing was changed`)
  }
}

export type ArchiveLine =
  | { kind: 'header'; header: ArchiveHeader }
  | { kind: 'table'; table: string; columns: readonly string[] }
  | { kind: 'row'; values: readonly (string | null)[] }
  | { kind: 'end'; sha256: string }

/** Longest line that is read: the largest content with room for escapes. */
const LONGEST_LINE_BYTES = 64 * 1024 * 1024

/**
 * Reads an archive line by line in bounded memory, and throws ArchiveDamagedError at its end at the latest where it is cut off, goes on
 * after its end, or has other bytes than were written; ArchiveVersionError for a format that is not known.
 */
export async function* readArchive(path: string): AsyncGenerator<ArchiveLine> {
  const damaged = (reason: string): ArchiveDamagedError => new ArchiveDamagedError(path, reason)
  const hash = createHash('sha256')
  let lines = 0
  let end: string | null = null
  let columns: number | null = null
  for await (const bytes of byteLines(path, damaged)) {
    if (end !== null) throw damaged('it goes on after its end')
    const value = parseJson(bytes)
    const ending = ArchiveEnd.safeParse(value)
    if (ending.success) {
      end = hash.digest('hex')
      if (ending.data.end.lines !== lines || ending.data.end.sha256 !== end) throw damaged('it is not what was written')
      continue
    }
    hash.update(bytes).update('\n')
    lines += 1
    if (lines === 1) yield { kind: 'header', header: headerOf(path, value) }
    else {
      const table = ArchiveTable.safeParse(value)
      const row = ArchiveRow.safeParse(value)
      if (table.success) {
        columns = table.data.columns.length
        yield { kind: 'table', ...table.data }
      } else if (row.success && row.data.length === columns) yield { kind: 'row', values: row.data }
      else throw damaged(`line ${lines} is neither a table nor one of its rows`)
    }
  }
  if (end === null) throw damaged('its end is missing')
  yield { kind: 'end', sha256: end }
}

function headerOf(path: string, value: unknown): ArchiveHeader {
  const header = ArchiveHeader.safeParse(value)
  if (header.success) return header.data
  const version = z.object({ lingtai_archive: z.unknown() }).safeParse(value)
  if (!version.success) throw new ArchiveDamagedError(path, 'it does not begin like an archive')
  if (version.data.lingtai_archive === 1) throw new ArchiveDamagedError(path, 'its header cannot be read')
  throw new ArchiveVersionError(path, `it has format ${JSON.stringify(version.data.lingtai_archive)}, known is 1`)
}

/** Lines as bytes, without their line feeds. The last one must have its own too. */
async function* byteLines(path: string, damaged: (reason: string) => Error): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  let length = 0
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
    const bytes = chunk as Buffer
    let from = 0
    for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, from)) {
      yield Buffer.concat([...rest, bytes.subarray(from, at)])
      rest = []
      length = 0
      from = at + 1
    }
    rest.push(bytes.subarray(from))
    length += bytes.byteLength - from
    if (length > LONGEST_LINE_BYTES) throw damaged('a line of it has no end')
  }
  if (length > 0) throw damaged('its last line is cut off')
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined // whatever it is, no schema takes it, and the caller says where it stands
  }
}

/** Reads an archive from its beginning to its end, keeps nothing of it, and answers its header and digest. Throws as `readArchive` does. */
export async function checkArchive(path: string): Promise<{ header: ArchiveHeader; digest: string }> {
  let header: ArchiveHeader | undefined
  let digest = ''
  for await (const line of readArchive(path)) {
    if (line.kind === 'header') header = line.header
    if (line.kind === 'end') digest = line.sha256
  }
  if (!header) throw new ArchiveDamagedError(path, 'it is empty')
  return { header, digest }
}
