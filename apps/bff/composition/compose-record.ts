import { AnchorCheck } from '#domains/record/anchor-check'
import type { AnchorFork } from '#domains/record/anchor-ports'
import { AnchorService } from '#domains/record/anchor.service'
import { EvidenceService } from '#domains/record/evidence.service'
import { VerifyService } from '#domains/record/verify.service'
import { Archive } from '#infra/archive/archive'
import { AnchorRepository } from '#infra/prisma/anchor.repository'
import { ChainRepository } from '#infra/prisma/chain.repository'
import { EvidenceRepository } from '#infra/prisma/evidence.repository'
import { RunRepository } from '#infra/prisma/run.repository'
import { OutboxRepository } from '#infra/prisma/outbox.repository'
import { HomeAnchorFile } from '#infra/record/anchor-file'
import { HomeErasureLedger } from '#infra/record/erasure-ledger'
import { openAnchorSigner } from '#infra/record/instance-key'
import type { AnchorSigner } from '#kernel/record/anchor'
import type { Foundation } from './foundation.ts'
import { keepAnchors } from './keep-anchors.ts'
import { verifyNowAndThen } from './verify-now-and-then.ts'

export type RecordParts = {
  anchors: AnchorService
  verify: VerifyService
  archive: Archive
  evidence: EvidenceService
  ledger: HomeErasureLedger
  /** The instance's own hand. */
  signer: AnchorSigner
  /** Brings this home's files outside the database in step with it: anchors and the ledger of erasures. */
  keepFiles(options?: { trustsAll?: boolean }): Promise<void>
}

/** What is said of the record as a whole: anchors, verification, archives, the ledger of erasures. */
export function composeRecord(foundation: Foundation): RecordParts {
  const { config, database, lightDatabase, log, contents, clock, lifecycle, logger } = foundation
  const store = new AnchorRepository(database)
  const file = new HomeAnchorFile(config.home)
  const ledger = new HomeErasureLedger(config.home)
  const signer = openAnchorSigner({
    home: config.home,
    secretKeys: config.secretKeys,
    pastKeys: async function* () {
      for await (const anchor of file.read()) yield anchor.public_key
    },
  })
  const verifyBy = (by: AnchorSigner): VerifyService =>
    new VerifyService({
      source: new ChainRepository({ database, contents }),
      anchors: new AnchorCheck({ store, file, signer: by }),
      now: () => clock.now().getTime(),
    })
  const verify = verifyBy(signer)
  const onSetAside = ({ from, count, epoch }: AnchorFork, path: string): void =>
    logger.warn({ from, count, epoch, path }, 'anchors of a time that a restore took back were put aside')
  const anchors = new AnchorService({ unitOfWork: database, log, store, file, signer, clock, onSetAside })
  const keepFiles: RecordParts['keepFiles'] = async (options) => {
    await anchors.keepFile(options)
    await ledger.keep(database)
  }
  contents.onErased = () => {
    ledger.keep(database).catch((error: unknown) => logger.warn({ err: error }, 'the ledger of erasures lags behind; it is tried again'))
  }
  // The first work to begin, so that it is the last to end: its farewell covers what the others wrote in theirs.
  lifecycle.addWork(keepAnchors({ foundation, anchors, keepFiles }))
  lifecycle.addWork(verifyNowAndThen({ foundation, verify }))
  return {
    anchors,
    verify,
    ledger,
    signer,
    keepFiles,
    evidence: new EvidenceService({
      log,
      contents,
      runs: new RunRepository(database),
      source: new EvidenceRepository(database),
      anchors: store,
      signer,
      clock,
    }),
    archive: new Archive({
      database,
      log,
      contents,
      outbox: new OutboxRepository(database),
      clock,
      ids: foundation.ids,
      ledgers: (given) => (given === null ? [ledger.path] : [ledger.path, given]),
      // Where this home has no file of anchors, nothing but the archive says whose signatures count.
      verify: (options) =>
        verifyBy({ ...signer, knows: async (key) => (await signer.knows(key)) || (await file.last()) === null }).verifyAll(options),
      anchors,
      allowLong: (work) => (lightDatabase ? lightDatabase.allowLongStatements(work) : work()),
    }),
  }
}
