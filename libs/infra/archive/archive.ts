import type { VerifyReport } from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { OutboxStore } from '#kernel/ports/outbox'
import type { AnchorFork } from '#domains/record/anchor-ports'
import type { AnchorService } from '#domains/record/anchor.service'
import { AFTER_RESTORE } from '#domains/record/after-restore'
import type { Database } from '../prisma/database.ts'
import type { LedgerEntry } from '../record/erasure-ledger.ts'
import { readLedger } from '../record/erasure-ledger.ts'
import { checkArchive } from './archive-format.ts'
import { restoreRows } from './restore-archive.ts'
import { writeArchive } from './write-archive.ts'
import type { ArchiveWritten } from './write-archive.ts'

/** What was restored is not whole: a chain, a content or an anchor does not fit. Nothing was kept. */
export class RestoredBrokenError extends Error {
  override readonly name = 'RestoredBrokenError'
  readonly report: VerifyReport

  constructor(path: string, report: VerifyReport) {
    const [first] = report.faults
    const where = first ? `, the first: ${first.stream} ${first.seq} ${first.fault}` : ''
    super(`${path} was not restored: its record has ${report.faults.length} faults${where}. Nothing was changed`)
    this.report = report
  }
}

export type ArchiveDeps = {
  database: Database
  log: EventLog
  contents: ContentStore
  outbox: Pick<OutboxStore, 'add'>
  clock: Clock
  ids: Pick<Ids, 'next'>
  /** Ids that were erased, as the files outside the database know them. */
  ledgers: (given: string | null) => readonly string[]
  /** Verifies everything as it is now inside the unit of work, taking the archive's word for whose signatures count where nothing else says it. */
  verify: (options: { before?: number }) => Promise<VerifyReport>
  /** The file of anchors outside the database, which may know of a time after the archive. */
  anchors: Pick<AnchorService, 'forkOf' | 'setAside'>
  /** Statements on the light tier may take long now. */
  allowLong: <Result>(work: () => Promise<Result>) => Promise<Result>
}

/** `aside`: anchors of this home that are later than the archive, and the file that they were moved to. */
export type Restored = { report: VerifyReport; erased: number; epoch: number; aside: (AnchorFork & { path: string }) | null }

const ERASE_AT_ONCE = 1_000

/** Headings are no contents, and no ledger names them: they go where nothing is left of what they stand over. */
const forgetHeadings: readonly string[] = [
  `UPDATE trees t SET title = ''
   WHERE t.title <> '' AND EXISTS (SELECT 1 FROM nodes n WHERE n.tree_id = t.id AND n.content_id IS NOT NULL)
     AND NOT EXISTS (SELECT 1 FROM nodes n JOIN contents c ON c.id = n.content_id WHERE n.tree_id = t.id AND c.erased_at IS NULL)`,
  `UPDATE lorebooks b SET name = '' FROM contents c WHERE c.id = b.source_content_id AND c.erased_at IS NOT NULL AND b.name <> ''`,
]

/** Backup, export, the way from the light tier to the full one, and the way back (decision 6). */
export class Archive {
  readonly #deps: ArchiveDeps

  constructor(deps: ArchiveDeps) {
    this.#deps = deps
  }

  /** Writes everything but what gives access to a new file. Throws ArchiveExistsError. */
  out(path: string): Promise<ArchiveWritten> {
    const { database, clock, allowLong } = this.#deps
    return allowLong(() => writeArchive({ database, path, at: clock.now() }))
  }

  /**
   * Restores into an empty instance, all of it or nothing: rows, then what was erased since the archive was made, the raised epoch and the
   * event that says so, then a full verification. Anchors of this home from after the archive are put aside and not compared with it. Throws NotEmptyError, ArchiveDamagedError, ArchiveVersionError, RestoredBrokenError.
   */
  in(path: string, ledger: string | null = null): Promise<Restored> {
    const { database, verify, anchors, allowLong } = this.#deps
    return allowLong(async () => {
      // Once through without touching anything: most damage is found before a table is locked.
      const { header, digest } = await checkArchive(path)
      return database.run(async () => {
        await restoreRows({ database, path, header })
        const epoch = header.cluster_epoch + 1
        await database.execute('UPDATE instance SET cluster_epoch = $1', [epoch])
        const erased = await this.#eraseAgain(ledger)
        await this.#record({ header, epoch, erased, digest })
        const fork = await anchors.forkOf({ epoch: header.cluster_epoch })
        const report = await verify({ before: fork?.from })
        if (!report.intact) throw new RestoredBrokenError(path, report)
        return { report, erased, epoch, aside: fork && { ...fork, path: await anchors.setAside(fork) } }
      })
    })
  }

  async #eraseAgain(given: string | null): Promise<number> {
    let erased = 0
    for (const path of this.#deps.ledgers(given)) {
      let batch: LedgerEntry[] = []
      for await (const entry of readLedger(path)) {
        batch.push(entry)
        if (batch.length < ERASE_AT_ONCE) continue
        erased += await this.#erase(batch)
        batch = []
      }
      erased += await this.#erase(batch)
    }
    if (erased === 0) return 0
    const { database, outbox, ids } = this.#deps
    for (const statement of forgetHeadings) await database.execute(statement)
    // What else went with the texts goes by the ordinary ways, as soon as there is an instance again.
    await outbox.add({ id: ids.next(), ownerId: null, topic: AFTER_RESTORE, payload: {} })
    return erased
  }

  /** Answers how many texts the archive had brought back, those of answers among them that were still being written. */
  async #erase(entries: readonly LedgerEntry[]): Promise<number> {
    if (entries.length === 0) return 0
    const { database, contents } = this.#deps
    const named = entries.map((entry) => entry.content_id)
    // Also of what is not there: it may still be stored, by whoever takes a run of the archive to its end.
    await database.execute(
      `INSERT INTO erasures (content_id, owner_id, cause, erased_at)
       SELECT e.content_id, e.owner_id, e.cause, e.erased_at
       FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[]) AS e(content_id, owner_id, cause, erased_at) ON CONFLICT DO NOTHING`,
      [named, entries.map((entry) => entry.owner_id), entries.map((entry) => entry.cause), entries.map((entry) => entry.erased_at)],
    )
    const spoken = await database.query<{ run_id: string }>(
      `WITH gone AS (
         DELETE FROM segments s USING runs r WHERE r.id = s.run_id AND r.candidate_id = ANY ($1::uuid[]) RETURNING s.run_id)
       SELECT DISTINCT run_id FROM gone`,
      [named],
    )
    return (await contents.erase({ ids: named, cause: 'restore' })).length + spoken.length
  }

  async #record(input: {
    header: { instance_id: string; cluster_epoch: number }
    epoch: number
    erased: number
    digest: string
  }): Promise<void> {
    const { header, epoch, erased, digest } = input
    await this.#deps.log.append({
      stream: `admin:${header.instance_id}`,
      ownerId: null,
      events: [
        {
          type: 'archive.restored',
          payload: { archive_digest: digest, from_epoch: header.cluster_epoch, to_epoch: epoch, erased },
          actor: 'operator',
          at: this.#deps.clock.now().toISOString(),
          cause: { tag: 'archive.in' },
        },
      ],
    })
  }
}
