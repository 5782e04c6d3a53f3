import { AnchorCheck } from '#domains/record/anchor-check'
import { AnchorService } from '#domains/record/anchor.service'
import { VerifyService } from '#domains/record/verify.service'
import { AnchorRepository } from '#infra/prisma/anchor.repository'
import { ChainRepository } from '#infra/prisma/chain.repository'
import { HomeAnchorFile } from '#infra/record/anchor-file'
import { openAnchorSigner } from '#infra/record/instance-key'
import type { Foundation } from './foundation.ts'
import { keepAnchors } from './keep-anchors.ts'

export type RecordParts = { anchors: AnchorService; verify: VerifyService }

/** What is said of the record as a whole: anchors and verification. */
export function composeRecord(foundation: Foundation): RecordParts {
  const { config, database, log, contents, clock, lifecycle } = foundation
  const store = new AnchorRepository(database)
  const file = new HomeAnchorFile(config.home)
  const signer = openAnchorSigner({
    home: config.home,
    secretKeys: config.secretKeys,
    pastKeys: async function* () {
      for await (const anchor of file.read()) yield anchor.public_key
    },
  })
  const anchors = new AnchorService({ unitOfWork: database, log, store, file, signer, clock })
  // The first work to begin, so that it is the last to end: its farewell covers what the others wrote in theirs.
  lifecycle.addWork(keepAnchors({ foundation, anchors }))
  return {
    anchors,
    verify: new VerifyService({
      source: new ChainRepository({ database, contents }),
      anchors: new AnchorCheck({ store, file, signer }),
      now: () => clock.now().getTime(),
    }),
  }
}
