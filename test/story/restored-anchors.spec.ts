import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { SignedAnchor } from '#contracts'
import type { Restored } from '#infra/archive/archive'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { composeRecord } from '../../apps/bff/composition/compose-record.ts'
import type { RecordParts } from '../../apps/bff/composition/compose-record.ts'
import { layFoundation } from '../../apps/bff/composition/foundation.ts'
import type { Foundation } from '../../apps/bff/composition/foundation.ts'
import { FIRST_ANCHOR_MS } from '../../apps/bff/composition/keep-anchors.ts'
import { systemScheduler } from '#infra/system/clock'
import { answer, askAndHear, newTree } from '../support/story.ts'
import { openStore } from '../support/system.ts'
import type { Store } from '../support/system.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* Decisions 6 and 18: a home outlives its database. Its file of anchors may know of a time that a restore takes back. */
vi.setConfig({ testTimeout: 240_000 })

type Instance = { store: Store; foundation: Foundation; record: RecordParts }

let world: World
let home: string
/** Archives, and how many anchors each holds. */
const older = { file: '', anchors: 0 }
const newer = { file: '', anchors: 0 }
const open: Instance[] = []

beforeAll(async () => {
  // Anchors are made when these tests say so.
  const after: typeof systemScheduler.after = (milliseconds, callback) =>
    milliseconds === FIRST_ANCHOR_MS ? () => undefined : systemScheduler.after(milliseconds, callback)
  world = await startWorld({ overrides: { scheduler: { after } } })
  home = world.system.system.config.home
  for (const kept of [older, newer, { file: '', anchors: 0 }]) {
    world.upstream.script(answer('Yes.'))
    await askAndHear(world.system, (await newTree(world.system)).id, 'And?')
    kept.anchors = (await world.system.system.record.anchors.anchor())?.seq ?? 0
    kept.file = join(home, `archive-${kept.anchors}.jsonl`)
    await world.system.system.record.archive.out(kept.file)
  }
})
afterAll(async () => {
  for (const { foundation, store } of open) {
    await foundation.lifecycle.close()
    await store.close()
  }
  await world.close()
})

/** An empty database under a home with the files of another one. */
async function fresh(from: string | null = home): Promise<Instance> {
  const store = await openStore('light')
  for (const name of ['anchors.jsonl', 'anchor.key', 'erasures.jsonl'])
    if (from !== null && existsSync(join(from, name))) copyFileSync(join(from, name), join(store.home, name))
  const foundation = await layFoundation({
    config: loadConfig({ PORT: '0', LINGTAI_HOME: store.home, ...store.environment }),
    logger: createLogger('silent'),
    overrides: store.connection ? { connection: store.connection } : {},
  })
  const instance = { store, foundation, record: composeRecord(foundation) }
  open.push(instance)
  return instance
}

/** As the command does it. */
async function restore({ record }: Instance, file: string): Promise<Restored> {
  const answered = await record.archive.in(file)
  await record.keepFiles({ trustsAll: true })
  await record.anchors.anchor()
  return answered
}

const filed = (of: string, name = 'anchors.jsonl'): SignedAnchor[] =>
  readFileSync(join(of, name), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => SignedAnchor.parse(JSON.parse(line)))
const numbers = (anchors: readonly SignedAnchor[]): number[] => anchors.map((anchor) => anchor.seq)

describe('an archive from before the home’s last anchors', () => {
  it('is restored; the anchors from after it are kept aside, and further ones go on from its own', async () => {
    const instance = await fresh()
    const before = filed(home)
    const { aside, report } = await restore(instance, newer.file)
    expect(report).toMatchObject({ intact: true, anchors: { filed: newer.anchors } })
    expect(aside).toEqual({
      from: newer.anchors + 1,
      count: 1,
      epoch: 1,
      path: join(instance.store.home, 'anchors.epoch-1.jsonl'),
    })
    expect(filed(instance.store.home, 'anchors.epoch-1.jsonl')).toEqual(before.slice(newer.anchors))
    const after = filed(instance.store.home)
    expect(after.slice(0, newer.anchors)).toEqual(before.slice(0, newer.anchors))
    expect(numbers(after)).toEqual([...numbers(before).slice(0, newer.anchors), newer.anchors + 1])
    expect(await instance.record.verify.verifyAll()).toMatchObject({ intact: true, anchors: { count: after.length, filed: after.length } })
  })

  it('is restored after an older one was, by mistake', async () => {
    const first = await fresh()
    await restore(first, older.file)
    const second = await fresh(first.store.home)
    const { aside } = await restore(second, newer.file)
    expect(aside).toMatchObject({ from: older.anchors + 1, epoch: 2 })
    expect(await second.record.verify.verifyAll()).toMatchObject({ intact: true, anchors: { filed: newer.anchors + 1 } })
  })

  it('leaves another home of the instance, which follows as soon as the restored one has anchored', async () => {
    const restored = await fresh()
    await restore(restored, older.file)
    const other = composeRecord({
      ...restored.foundation,
      config: { ...restored.foundation.config, home: (await fresh()).store.home },
    })
    expect((await other.verify.verifyAll()).intact).toBe(false)
    await other.keepFiles()
    expect(await other.verify.verifyAll()).toMatchObject({ intact: true, faults: [], anchors: { filed: older.anchors + 1 } })
  })
})

describe('an archive that the home’s anchors speak against', () => {
  it('is not restored: what it holds under a number is not what was filed', async () => {
    const instance = await fresh()
    const path = join(instance.store.home, 'anchors.jsonl')
    const [first, ...rest] = filed(instance.store.home)
    const altered = { ...first, signature: rest[0]?.signature }
    writeFileSync(path, [altered, ...rest].map((anchor) => `${JSON.stringify(anchor)}\n`).join(''))
    await expect(instance.record.archive.in(newer.file)).rejects.toThrow(/anchors 1 anchor_altered/)
    expect(existsSync(join(instance.store.home, 'anchors.epoch-1.jsonl'))).toBe(false)
    expect(filed(instance.store.home)).toHaveLength(rest.length + 1)
  })

  it('is never left by a home on the word of a database alone', async () => {
    const restored = await fresh()
    await restored.record.archive.in(older.file)
    // Nobody who has a key of ours has anchored since.
    const other = composeRecord({ ...restored.foundation, config: { ...restored.foundation.config, home: (await fresh()).store.home } })
    await other.keepFiles()
    expect((await other.verify.verifyAll()).faults).toMatchObject([
      { seq: older.anchors + 1, fault: 'anchor_missing' },
      { seq: newer.anchors + 1, fault: 'anchor_missing' },
    ])
  })
})
