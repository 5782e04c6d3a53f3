import type { AnchorBody, SignedAnchor } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { anchorBody, headLeaf, isSignedByItsKey, NO_ANCHOR_HASH, signAnchor } from '#kernel/record/anchor'
import type { AnchorSigner } from '#kernel/record/anchor'
import { sha256Hex } from '#kernel/record/chain'
import { MerkleRoot } from '#kernel/record/merkle'
import type { AnchorFile, AnchorFork, AnchorStore } from './anchor-ports.ts'

export type AnchorServiceDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  store: AnchorStore
  file: AnchorFile
  signer: AnchorSigner
  clock: Clock
  /** Told of anchors that were put aside, and where they are. */
  onSetAside?: (fork: AnchorFork, path: string) => void
}

/** Heads, or anchors, that are held in memory at once. */
const PAGE = 1_000

/** The newest anchor is by a key that this process does not know: to sign on top of it would vouch for what cannot be checked here. */
export class ForeignAnchorError extends Error {
  constructor(seq: number) {
    super(
      `anchor ${seq} is signed by a key that is not known here, so no further anchor is made; give every process of the instance the same LINGTAI_SECRET_KEYS, and see what \`verify\` says`,
    )
    this.name = 'ForeignAnchorError'
  }
}

/**
 * Signed statements of where all streams stood, so that a tail that was cut off, or a whole stream that was taken away, is missed
 * (K5, decision 18).
 */
export class AnchorService {
  readonly #deps: AnchorServiceDeps
  #filing: Promise<unknown> = Promise.resolve()

  constructor(deps: AnchorServiceDeps) {
    this.#deps = deps
  }

  /**
   * Anchors what moved since the last anchor, and brings the file up to date. Null where nothing moved or somebody else is at it.
   * Throws ForeignAnchorError.
   */
  async anchor(): Promise<SignedAnchor | null> {
    const { unitOfWork, store } = this.#deps
    const made = await unitOfWork.run(async () => {
      if (!(await store.claim()) || !(await store.hasNews())) return null
      return this.#make(await store.latest())
    })
    await this.keepFile()
    return made
  }

  async #make(latest: SignedAnchor | null): Promise<SignedAnchor> {
    const { log, store, signer, clock } = this.#deps
    if (latest && !(await signer.knows(latest.public_key))) throw new ForeignAnchorError(latest.seq)
    const instance = await store.instance()
    const seq = (latest?.seq ?? 0) + 1
    const previous = latest?.hash ?? NO_ANCHOR_HASH
    const at = clock.now().toISOString()
    // Said before the heads are read, so that the anchor covers its own event and is no news to the next one.
    await log.append({
      stream: `admin:${instance.id}`,
      ownerId: null,
      events: [
        {
          type: 'anchor.signed',
          payload: { anchor: seq, previous_hash: previous, key: sha256Hex(signer.publicKey) },
          actor: 'system',
          at,
          cause: { tag: 'anchor' },
        },
      ],
    })
    await store.cover(seq)
    const { leaves, root } = await headsRoot(store, seq)
    const body: AnchorBody = {
      version: 1,
      instance_id: instance.id,
      cluster_epoch: instance.epoch,
      seq,
      at,
      heads: leaves,
      heads_root: root,
      previous_hash: previous,
    }
    const anchor = signAnchor(body, signer)
    await store.insert(anchor)
    return anchor
  }

  /**
   * Appends to this home's file what it lacks: anchors of other processes, and one after which this process died. Only what this instance
   * signed; after a restore, `trustsAll` takes the archive's word for earlier keys. Answers how many.
   */
  keepFile({ trustsAll = false } = {}): Promise<number> {
    const filing = this.#filing.catch(() => undefined).then(() => this.#keepFile(trustsAll)) // the one before told its own caller
    this.#filing = filing
    return filing
  }

  /**
   * Where the file goes on into a time that a restore took back: past the last anchor that an archive of `epoch` holds, or along another
   * line of a later epoch. Inside the unit of work that restores.
   */
  forkOf(archive: { epoch: number }): Promise<AnchorFork | null> {
    return this.#fork(async (line, stored) => stored === undefined || (line.hash !== stored.hash && epochOf(line) > archive.epoch))
  }

  async setAside(fork: AnchorFork): Promise<string> {
    const path = await this.#deps.file.setAside(fork)
    this.#deps.onSetAside?.(fork, path)
    return path
  }

  /** Another home of the instance restored it: its anchors of a later epoch, signed by a key of ours, stand where this file has others. */
  async #leaveFork(): Promise<void> {
    const { store, file, signer } = this.#deps
    const last = await file.last()
    if (!last || epochOf(last) >= (await store.instance()).epoch) return
    const [same] = await store.list(last.seq - 1, 1)
    if (same?.seq === last.seq && same.hash === last.hash) return
    const fork = await this.#fork(
      async (line, stored) =>
        stored !== undefined &&
        line.hash !== stored.hash &&
        epochOf(stored) > epochOf(line) &&
        isSignedByItsKey(stored) &&
        (await signer.knows(stored.public_key)),
    )
    if (fork) await this.setAside(fork)
  }

  /** From the first anchor on file that is `other` than what the database has under its number. */
  async #fork(other: (line: SignedAnchor, stored: SignedAnchor | undefined) => Promise<boolean>): Promise<AnchorFork | null> {
    const { store, file } = this.#deps
    let page = new Map<number, SignedAnchor>()
    let paged = 0
    let seen = 0
    let fork: AnchorFork | null = null
    for await (const line of file.read()) {
      if (fork && line.seq >= fork.from) fork.count += 1
      // Processes that share a home may both have filed it.
      if (fork || line.seq <= seen) continue
      seen = line.seq
      if (line.seq > paged) {
        page = new Map((await store.list(line.seq - 1, PAGE)).map((anchor) => [anchor.seq, anchor]))
        paged = line.seq - 1 + PAGE
      }
      if (await other(line, page.get(line.seq))) fork = { from: line.seq, count: 1, epoch: epochOf(line) }
    }
    return fork
  }

  async #keepFile(trustsAll: boolean): Promise<number> {
    const { store, file, signer } = this.#deps
    await this.#leaveFork()
    const first = (await file.last())?.seq ?? 0
    let last = first
    for (let isWhole = true; isWhole;) {
      const page = await store.list(last, PAGE)
      const trusted: SignedAnchor[] = []
      for (const anchor of page) {
        if (anchor.seq !== last + 1 || !isSignedByItsKey(anchor)) break
        if (!trustsAll && !(await signer.knows(anchor.public_key))) break
        trusted.push(anchor)
        last = anchor.seq
      }
      await file.append(trusted)
      isWhole = trusted.length === PAGE
    }
    return last - first
  }
}

/** 0 where it says none. */
function epochOf(anchor: SignedAnchor): number {
  return anchorBody(anchor)?.cluster_epoch ?? 0
}

/** Number and Merkle root of the heads under an anchor, read in pages. */
export async function headsRoot(store: Pick<AnchorStore, 'heads'>, seq: number): Promise<{ leaves: number; root: string }> {
  const tree = new MerkleRoot()
  for (let after = ''; ;) {
    const page = await store.heads(seq, after, PAGE)
    for (const head of page) tree.add(headLeaf(head))
    const last = page.at(-1)
    if (!last || page.length < PAGE) break
    after = last.stream
  }
  return { leaves: tree.leaves, root: Buffer.from(tree.root()).toString('hex') }
}
