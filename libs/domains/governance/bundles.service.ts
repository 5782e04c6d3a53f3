import { BundleContent, LingtaiError } from '#contracts'
import type { ActivateBundle, BundleView, EvaluateBundle, NewEvent } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { canonicalJson } from '#kernel/record/canonical-json'
import { sha256Hex } from '#kernel/record/chain'
import { isKnownHere } from './known-versions.ts'

export type BundleRow = { hash: string; content: string; accepted: boolean | null; active: boolean; created_at: Date }

/** Bundles in the database, which holds that only a person moves the pointer, and only to what was accepted. */
export interface BundleStore {
  /** Adds a bundle where it is not there yet. */
  keep(bundle: { hash: string; content: string; proposedBy: string | null }): Promise<void>
  find(hash: string): Promise<BundleRow | null>
  list(limit: number): Promise<BundleRow[]>
  active(): Promise<{ hash: string; content: string } | null>
  /** Whether a bundle was ever active. */
  wasActive(hash: string): Promise<boolean>
  evaluate(evaluation: { hash: string; accepted: boolean; by: string | null }): Promise<void>
  /** One conditional move; false where `from` is no longer active. */
  promote(move: { from: string | null; to: string; reason: 'release' | 'promote' | 'rollback'; by: string | null }): Promise<boolean>
}

/** A bundle that runs can be pinned to. */
export type ActiveBundle = { hash: string; content: BundleContent }

/** What the platform lets every run be, moved by people alone (K8). A run keeps what it was started with. */
export class BundlesService {
  readonly #unit: UnitOfWork
  readonly #store: BundleStore
  readonly #log: EventLog
  readonly #clock: Clock
  readonly #known = new Map<string, BundleContent>()

  constructor(parts: { unit: UnitOfWork; store: BundleStore; log: EventLog; clock: Clock }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#log = parts.log
    this.#clock = parts.clock
  }

  /** Makes this release's bundle known, and active where none is yet: an instance keeps what its people chose. */
  async release(content: BundleContent): Promise<void> {
    const bundle = addressed(content)
    await this.#unit.run(async () => {
      const known = await this.#store.find(bundle.hash)
      if (!known) {
        await this.#store.keep({ ...bundle, proposedBy: null })
        await this.#store.evaluate({ hash: bundle.hash, accepted: true, by: null })
        await this.#record([{ type: 'bundle.evaluated', payload: { hash: bundle.hash, accepted: true, by: null } }], 'system')
      }
      if ((await this.#store.active()) !== null) return
      if (!(await this.#store.promote({ from: null, to: bundle.hash, reason: 'release', by: null }))) return
      await this.#record([{ type: 'bundle.activated', payload: { from: null, to: bundle.hash, reason: 'release', by: null } }], 'system')
    })
  }

  /** What a run that starts now is pinned to. Throws other_version where that is for a release other than this process's. */
  async active(): Promise<ActiveBundle> {
    const row = await this.#store.active()
    if (!row) throw new LingtaiError('unavailable', 'No bundle is active.')
    const content = BundleContent.parse(JSON.parse(row.content))
    if (!isKnownHere(content)) throw new LingtaiError('other_version', 'The active bundle is for versions that this process does not have.')
    return { hash: row.hash, content }
  }

  /** What a run was pinned to; a bundle never changes. Throws not_found. */
  async of(hash: string): Promise<BundleContent> {
    const known = this.#known.get(hash)
    if (known) return known
    const row = await this.#store.find(hash)
    if (!row) throw new LingtaiError('not_found')
    const content = BundleContent.parse(JSON.parse(row.content))
    this.#known.set(hash, content)
    return content
  }

  async list(): Promise<{ items: BundleView[] }> {
    return { items: (await this.#store.list(200)).map(view) }
  }

  /** Throws not_found. */
  async get(hash: string): Promise<BundleView> {
    const row = await this.#store.find(hash)
    if (!row) throw new LingtaiError('not_found')
    return view(row)
  }

  /** The same content is the same bundle, whoever proposes it how often. Proposing activates nothing. */
  async propose(content: BundleContent, by: string): Promise<BundleView> {
    const bundle = addressed(content)
    await this.#unit.run(async () => {
      if (await this.#store.find(bundle.hash)) return
      await this.#store.keep({ ...bundle, proposedBy: by })
      await this.#record([{ type: 'bundle.proposed', payload: { hash: bundle.hash, by } }], 'owner')
    })
    return this.get(bundle.hash)
  }

  /** One more word on a bundle; the last one counts. Throws not_found. */
  async evaluate(hash: string, { accepted }: EvaluateBundle, by: string): Promise<BundleView> {
    await this.#unit.run(async () => {
      if (!(await this.#store.find(hash))) throw new LingtaiError('not_found')
      await this.#store.evaluate({ hash, accepted, by })
      await this.#record([{ type: 'bundle.evaluated', payload: { hash, accepted, by } }], 'owner')
    })
    return this.get(hash)
  }

  /**
   * Moves the pointer, forward or back; a way back leads only to what was active before. Running and suspended runs keep theirs. Throws
   * not_found, wrong_state (it was not accepted, or never active), other_version, revision_conflict (another one is active by now).
   */
  async activate(hash: string, { from, reason }: ActivateBundle, by: string): Promise<BundleView> {
    await this.#unit.run(async () => {
      const row = await this.#store.find(hash)
      if (!row) throw new LingtaiError('not_found')
      if (row.accepted !== true) throw new LingtaiError('wrong_state', 'The bundle was not accepted.')
      if (reason === 'rollback' && !(await this.#store.wasActive(hash)))
        throw new LingtaiError('wrong_state', 'The bundle was never active.')
      if (!isKnownHere(BundleContent.parse(JSON.parse(row.content))))
        throw new LingtaiError('other_version', 'The bundle is for versions that this release does not have.')
      const active = await this.#store.active()
      if (active?.hash !== from) throw new LingtaiError('revision_conflict')
      if (active.hash === hash) return
      if (!(await this.#store.promote({ from, to: hash, reason, by }))) throw new LingtaiError('revision_conflict')
      await this.#record([{ type: 'bundle.activated', payload: { from, to: hash, reason, by } }], 'owner')
    })
    return this.get(hash)
  }

  async #record(events: readonly BundleEvent[], actor: string): Promise<void> {
    const at = this.#clock.now().toISOString()
    await this.#log.append({
      stream: 'admin:platform',
      ownerId: null,
      events: events.map((event) => ({ ...event, actor, at, cause: { tag: 'bundle' } }) as NewEvent),
    })
  }
}

type BundleEvent = Pick<NewEvent<'bundle.proposed' | 'bundle.evaluated' | 'bundle.activated'>, 'type' | 'payload'>

function addressed(content: BundleContent): { hash: string; content: string } {
  const text = canonicalJson(content)
  return { hash: sha256Hex(text), content: text }
}

function view(row: BundleRow): BundleView {
  const { hash, accepted, active, created_at } = row
  return { hash, content: BundleContent.parse(JSON.parse(row.content)), accepted, active, created_at: created_at.toISOString() }
}
