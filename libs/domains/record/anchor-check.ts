import type { SignedAnchor, VerifyReport } from '#contracts'
import { anchorBody, isSignedByItsKey, NO_ANCHOR_HASH } from '#kernel/record/anchor'
import type { AnchorSigner } from '#kernel/record/anchor'
import { sha256Hex } from '#kernel/record/chain'
import { headsRoot } from './anchor.service.ts'
import type { AnchorFile, AnchorStore } from './anchor-ports.ts'

type Fault = VerifyReport['faults'][number]

/** What the checks found: `filed` anchors stand in this home's file, which is what a database that lies is compared with. */
export type AnchorFindings = { count: number; filed: number; faults: Fault[] }

/** Faults of the anchors themselves are told under this name, which no stream has. */
export const ANCHORS = 'anchors'

const PAGE = 200

/**
 * Compares the record with its anchors, and the anchors with each other, their signatures and the file outside the database (decision 18).
 * An anchor that was removed is told from the ones around it, the file, or the log, which names each anchor as well.
 */
export class AnchorCheck {
  readonly #store: AnchorStore
  readonly #file: AnchorFile
  readonly #signer: AnchorSigner

  constructor({ store, file, signer }: { store: AnchorStore; file: AnchorFile; signer: AnchorSigner }) {
    this.#store = store
    this.#file = file
    this.#signer = signer
  }

  /** `before`: anchors on file from this number on are of a time that was taken back, and promise nothing. */
  async check({ before = Infinity }: { before?: number } = {}): Promise<AnchorFindings> {
    const faults: Fault[] = []
    const note = (seq: number, fault: Fault['fault']): void => void faults.push({ stream: ANCHORS, seq, fault })
    // The file and the log first: an anchor that is made meanwhile is in the table by the time the table is read.
    const filed = await this.#readFile(before, note)
    const promised = Math.max(await this.#store.lastRecorded(), filed.last)
    const instance = await this.#store.instance()
    let count = 0
    let last = { seq: 0, hash: NO_ANCHOR_HASH }
    for (let page = await this.#store.list(0, PAGE); page.length > 0; page = await this.#store.list(last.seq, PAGE)) {
      for (const anchor of page) {
        for (let missing = last.seq + 1; missing < anchor.seq; missing++) note(missing, 'anchor_missing')
        const fault = await this.#faultOf({
          anchor,
          previousHash: anchor.seq === last.seq + 1 ? last.hash : null,
          instance,
          filed: filed.digests,
        })
        if (fault) note(anchor.seq, fault)
        for (const head of await this.#store.unproven(anchor.seq))
          faults.push({ stream: head.stream, seq: head.seq, fault: 'anchored_head' })
        count += 1
        last = { seq: anchor.seq, hash: anchor.hash }
      }
    }
    for (let missing = last.seq + 1; missing <= promised; missing++) note(missing, 'anchor_missing')
    return { count, filed: filed.digests.size, faults: firstOfEach(faults) }
  }

  /** Digest of each line by number. */
  async #readFile(
    before: number,
    note: (seq: number, fault: Fault['fault']) => void,
  ): Promise<{ digests: Map<number, string>; last: number }> {
    const digests = new Map<number, string>()
    let last = 0
    for await (const line of this.#file.read()) {
      if (line.seq >= before) continue
      const digest = digestOf(line)
      if ((digests.get(line.seq) ?? digest) !== digest || line.seq > last + 1) note(line.seq, 'anchor_altered')
      digests.set(line.seq, digest)
      last = Math.max(last, line.seq)
    }
    return { digests, last }
  }

  /** `previousHash` is null where the anchor before is missing and cannot be compared. */
  async #faultOf(input: {
    anchor: SignedAnchor
    previousHash: string | null
    instance: { id: string; epoch: number }
    filed: ReadonlyMap<number, string>
  }): Promise<Fault['fault'] | null> {
    const { anchor, previousHash, instance, filed } = input
    const body = anchorBody(anchor)
    const onFile = filed.get(anchor.seq)
    if (!body || (onFile !== undefined && onFile !== digestOf(anchor))) return 'anchor_altered'
    if (body.instance_id !== instance.id || body.cluster_epoch > instance.epoch) return 'anchor_altered'
    if (previousHash !== null && body.previous_hash !== previousHash) return 'anchor_altered'
    if (!(await this.#signer.knows(anchor.public_key)) || !isSignedByItsKey(anchor)) return 'anchor_signature'
    const { leaves, root } = await headsRoot(this.#store, anchor.seq)
    return leaves === body.heads && root === body.heads_root ? null : 'anchor_altered'
  }
}

function digestOf(anchor: SignedAnchor): string {
  return sha256Hex([anchor.seq, anchor.canonical, anchor.hash, anchor.public_key, anchor.signature].join('\n'))
}

/** A stream that lost its end is told once, at the first head that is not proven; so are anchors. */
function firstOfEach(faults: readonly Fault[]): Fault[] {
  const told = new Set<string>()
  return faults.filter(({ stream, seq, fault }) => {
    const key = stream === ANCHORS ? `${seq} ${fault}` : stream
    if (told.has(key)) return false
    told.add(key)
    return true
  })
}
