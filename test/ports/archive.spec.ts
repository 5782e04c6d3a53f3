import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { PathView } from '#contracts'
import { loadConfig } from '#infra/config/config'
import type { Restored } from '#infra/archive/archive'
import { createLogger } from '#infra/logging/logger'
import { composeRecord } from '../../apps/bff/composition/compose-record.ts'
import type { RecordParts } from '../../apps/bff/composition/compose-record.ts'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'
import { layFoundation } from '../../apps/bff/composition/foundation.ts'
import type { Foundation } from '../../apps/bff/composition/foundation.ts'
import { ownedThings } from '../support/owned-things.ts'
import { recorded } from '../support/plant.ts'
import { portTiers } from '../support/port-tier.ts'
import { askAndHear, call, newTree, path } from '../support/story.ts'
import { openStore, startTestSystem } from '../support/system.ts'
import type { Store, TestSystem } from '../support/system.ts'

/* Decision 6: one archive is backup, export and the way between the tiers. */
vi.setConfig({ testTimeout: 240_000 })

type Tier = 'light' | 'full'
const ways: [Tier, Tier][] = portTiers.includes('full')
  ? [
      ['light', 'full'],
      ['full', 'light'],
    ]
  : [['light', 'light']]

describe.each(ways)('an archive from the %s tier, restored on the %s tier', (from, to) => {
  let source: TestSystem
  let owned: Record<string, string>
  let treeId: string
  let shown: PathView
  let archived: string
  let lines: string[]
  const stores: Store[] = []

  beforeAll(async () => {
    source = await startTestSystem({ tier: from })
    owned = await ownedThings(source)
    const tree = await newTree(source)
    treeId = tree.id
    await askAndHear(source, treeId, '灯塔🗼 "quoted"\\ and\ttabs')
    const { accepted } = await askAndHear(source, treeId, 'Forget this one.')
    await call(source, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    shown = await path(source, treeId)
    await source.system.record.anchors.anchor()
    archived = join(source.system.config.home, 'archive.jsonl')
    await source.system.record.archive.out(archived)
    lines = linesOf(archived)
  }, 240_000)
  afterAll(async () => {
    for (const store of stores) await store.close()
    await source.close()
  })

  const linesOf = (file: string): string[] => readFileSync(file, 'utf8').trimEnd().split('\n')

  /** An archive with these lines and a right end. */
  function write(body: readonly string[]): string {
    const file = join(source.system.config.home, `changed-${Math.random()}.jsonl`)
    const text = body.map((line) => `${line}\n`).join('')
    const end = { end: { lines: body.length, sha256: createHash('sha256').update(text).digest('hex') } }
    writeFileSync(file, `${text}${JSON.stringify(end)}\n`)
    return file
  }

  type Rows = { table: string; columns: string[]; rows: (string | null)[][] }

  function tables(of: readonly string[]): Rows[] {
    const found: Rows[] = []
    for (const line of of.slice(1, -1)) {
      const value = JSON.parse(line) as (string | null)[] | { table: string; columns: string[] }
      if (Array.isArray(value)) found.at(-1)?.rows.push(value)
      else found.push({ ...value, rows: [] })
    }
    return found
  }

  /** The archive with a table's rows changed, in lines without an end. */
  function changed(table: string, change: (row: Record<string, string | null>) => Record<string, string | null> | null): string[] {
    let hits = 0
    const body = tables(lines).flatMap(({ rows, ...head }) => [
      JSON.stringify(head),
      ...rows.flatMap((row) => {
        if (head.table !== table) return JSON.stringify(row)
        const before = Object.fromEntries(head.columns.map((column, index) => [column, row[index] ?? null]))
        const after = change(before)
        if (JSON.stringify(after) !== JSON.stringify(before)) hits += 1
        return after ? JSON.stringify(head.columns.map((column) => after[column] ?? null)) : []
      }),
    ])
    expect(hits).toBeGreaterThan(0)
    return [lines[0] ?? '', ...body]
  }

  async function fresh(): Promise<{ store: Store; foundation: Foundation; record: RecordParts }> {
    const store = await openStore(to)
    stores.push(store)
    const foundation = await layFoundation({
      config: loadConfig({ PORT: '0', LINGTAI_HOME: store.home, ...store.environment }),
      logger: createLogger('silent'),
      overrides: store.connection ? { connection: store.connection } : {},
    })
    return { store, foundation, record: composeRecord(foundation) }
  }

  async function restored(
    file: string,
    ledger: string | null = null,
  ): Promise<{ store: Store; foundation: Foundation; record: RecordParts; answer: Restored }> {
    const target = await fresh()
    return { ...target, answer: await target.record.archive.in(file, ledger) }
  }

  function start(store: Store): Promise<System> {
    return composeSystem({
      config: loadConfig({ PORT: '0', LINGTAI_HOME: store.home, ...store.environment }),
      logger: createLogger('silent'),
      overrides: store.connection ? { connection: store.connection } : {},
    })
  }

  /** Nothing but the migrations' own table has rows, and all triggers are on. */
  async function expectUntouched({ database }: Foundation): Promise<void> {
    const names = await database.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname <> '_prisma_migrations'`,
    )
    expect(names.length).toBeGreaterThan(30)
    for (const { name } of names) expect(await database.query(`SELECT 1 FROM "${name}" LIMIT 1`), name).toEqual([])
    await expectTriggers(database)
  }
  async function expectTriggers(database: Foundation['database']): Promise<void> {
    expect(await database.query(`SELECT tgname FROM pg_trigger WHERE tgenabled <> 'O'`)).toEqual([])
    const deferrable = `SELECT conrelid::regclass::text AS "table", conname AS name FROM pg_constraint WHERE contype = 'f' AND condeferrable ORDER BY 1, 2`
    expect(await database.query(deferrable)).toEqual(await source.system.database.query(deferrable))
  }

  it('goes back in and comes out again byte for byte, but for what says that it was restored', async () => {
    const { store, foundation, record, answer } = await restored(archived)
    expect(answer).toMatchObject({ report: { intact: true, faults: [] }, epoch: 2, erased: 0 })
    expect(answer.report.anchors.count).toBeGreaterThan(0)
    await expectTriggers(foundation.database)
    const again = join(store.home, 'again.jsonl')
    await record.archive.out(again)
    const [header, ...body] = linesOf(again)
    const { instance_id: instance } = JSON.parse(header ?? '') as { instance_id: string }
    expect(header).toContain('"cluster_epoch":2')
    const isOfRestore = (line: string): boolean =>
      line.startsWith(`["1", "${instance}"`) || line.startsWith(`["admin:${instance}"`) || line.includes('"archive.restored"')
    const rest = (all: readonly string[]): string[] => all.slice(0, -1).filter((line) => !isOfRestore(line))
    expect(rest(body)).toEqual(rest(lines.slice(1)))
    expect(body.filter(isOfRestore)).toHaveLength(3)
    expect(body).toHaveLength(lines.length)
    await foundation.lifecycle.close()
  })

  it('is a whole instance afterwards: what was said is there, is rebuilt, and goes on in the same record', async () => {
    const { store, foundation, record } = await restored(archived)
    await record.keepFiles({ trustsAll: true })
    await record.anchors.anchor()
    const [before] = await foundation.database.query<{ position: number }>('SELECT max(position) AS position FROM events')
    await foundation.lifecycle.close()
    const system = await start(store)
    try {
      expect(system.firstOwner.id).toBe(source.ownerId)
      const page = await system.conversation.trees.path(source.ownerId, treeId, { limit: 50 })
      expect(page.nodes.map((node) => node.text)).toEqual(shown.nodes.map((node) => node.text))
      expect(page.nodes.some((node) => node.text?.includes('灯塔🗼 "quoted"\\ and\ttabs'))).toBe(true)
      const runs = await system.conversation.runStore.sample(50)
      expect(runs.length).toBeGreaterThan(2)
      for (const run of runs) {
        for (const { result } of await system.conversation.replays.everyContext(run)) expect(result).not.toBe('different')
      }
      await system.identity.tokens.create({
        ownerId: source.ownerId,
        name: 'x',
        scopes: ['read'],
        grantable: new Set(['read']),
        actor: 'operator',
      })
      const [after] = await system.database.query<{ position: number; epoch: number }>(
        'SELECT position, cluster_epoch AS epoch FROM events ORDER BY position DESC LIMIT 1',
      )
      expect(after?.epoch).toBe(2)
      expect(after?.position).toBeGreaterThan(before?.position ?? 0)
      const report = await system.conversation.verify.verifyAll()
      expect(report).toMatchObject({ intact: true, faults: [] })
      expect(report.anchors.filed).toBe(report.anchors.count)
      const [restore] = await recorded(
        { ...source, system },
        `admin:${(JSON.parse(lines[0] ?? '') as { instance_id: string }).instance_id}`,
        'archive.restored',
      )
      expect(restore).toMatchObject({
        from_epoch: 1,
        to_epoch: 2,
        archive_digest: (JSON.parse(lines.at(-1) ?? '') as { end: { sha256: string } }).end.sha256,
      })
    } finally {
      await system.close()
    }
  })

  it('holds nothing that gives access', async () => {
    const names = tables(lines).map((table) => table.table)
    expect(names).toEqual(expect.arrayContaining(['events', 'contents', 'erasures', 'anchors', 'memories', 'nodes', 'runs', 'outbox']))
    for (const name of ['sessions', 'signin_links', 'tokens', 'idempotency_keys', 'tool_source_secrets']) expect(names).not.toContain(name)
    const [hash] = await source.system.database.query<{ hash: string }>(`SELECT encode(token_hash, 'base64') AS hash FROM tokens LIMIT 1`)
    expect(hash?.hash.length).toBeGreaterThan(40)
    expect(lines.join('\n')).not.toContain(hash?.hash)
    expect(tables(lines).find((table) => table.table === 'owners')?.columns).not.toContain('password_hash')
    expect(owned['tokens']).toBeDefined()
  })

  it('is not restored over anything', async () => {
    const before = await source.system.database.query('SELECT count(*) AS events FROM events')
    await expect(source.system.record.archive.in(archived)).rejects.toThrow(/not empty/)
    expect(await source.system.database.query('SELECT count(*) AS events FROM events')).toEqual(before)
    await expectTriggers(source.system.database)
    await expect(source.system.record.archive.out(archived)).rejects.toThrow(/is there already/)
  })

  it('is refused cut off, altered or prolonged anywhere, and leaves nothing', async () => {
    const whole = readFileSync(archived)
    const { foundation, record } = await fresh()
    const file = join(source.system.config.home, 'broken.jsonl')
    const cuts = [
      0,
      1,
      100,
      Math.floor(whole.byteLength / 3),
      Math.floor(whole.byteLength / 2),
      whole.byteLength - 300,
      whole.byteLength - 1,
    ]
    for (const cut of cuts) {
      writeFileSync(file, whole.subarray(0, cut))
      await expect(record.archive.in(file), `cut at ${cut}`).rejects.toThrow(/cannot be restored/)
    }
    for (const at of [2, 150, Math.floor(whole.byteLength / 4), Math.floor((whole.byteLength * 3) / 4), whole.byteLength - 40]) {
      const bytes = Buffer.from(whole)
      bytes[at] = (bytes[at] ?? 0) ^ 1
      writeFileSync(file, bytes)
      await expect(record.archive.in(file), `flipped at ${at}`).rejects.toThrow(/Nothing was changed/)
    }
    writeFileSync(file, Buffer.concat([whole, Buffer.from('[]\n')]))
    await expect(record.archive.in(file)).rejects.toThrow(/goes on after its end/)
    // The same length of lines, one of them taken out, another doubled.
    writeFileSync(file, `${lines.toSpliced(9, 1, lines[8] ?? '').join('\n')}\n`)
    await expect(record.archive.in(file)).rejects.toThrow(/not what was written/)
    await expectUntouched(foundation)
    await foundation.lifecycle.close()
  })

  it('is refused where its end is right and its contents are not: by the chains, the anchors, the constraints and the checks', async () => {
    const { foundation, record } = await fresh()
    const lastOfRun = tables(lines)
      .find((table) => table.table === 'events')
      ?.rows.findLast((row) => row.includes('run.finished'))
    const stream = lastOfRun?.find((value) => value?.startsWith('run:')) ?? ''
    const seq = Number(lastOfRun?.[4])
    expect([stream.length, seq > 3]).toEqual([40, true])
    const hashBefore = lastOfRun?.[lastOfRun.length - 3] ?? ''
    const cut = changed('events', (row) => (row['stream'] === stream && row['seq'] === String(seq) ? null : row))
    const cutWithHead = cut.map((line) => {
      if (!line.startsWith(`["${stream}",`)) return line
      const row = JSON.parse(line) as (string | null)[]
      return row.length === 5 ? JSON.stringify([row[0], row[1], String(seq - 1), hashBefore, row[4]]) : line
    })
    const attempts: [string, string[], RegExp][] = [
      [
        'another text',
        changed('contents', (row) => ({ ...row, body: row['body'] === 'Forget this one.' ? 'Keep this one.' : (row['body'] ?? null) })),
        /content/,
      ],
      [
        'another event',
        changed('events', (row) => ({ ...row, canonical: row['canonical']?.replace('"turn":1', '"turn":2') ?? null })),
        /faults/,
      ],
      ['an event left out', cut, /head/],
      ['a run without its end', cutWithHead, /anchored_head/],
      ['an anchor left out', changed('anchors', () => null), /foreign key/],
      [
        'a node of another depth',
        changed('nodes', (row) => ({ ...row, depth: row['depth'] === '2' ? '3' : (row['depth'] ?? null) })),
        /hangs elsewhere/,
      ],
      ['a heavy memory', changed('memories', (row) => ({ ...row, level: 'heavy' })), /did not confirm/],
      ['an owner who is not there', changed('lorebooks', (row) => ({ ...row, owner_id: treeId })), /foreign key/],
      ['a table that nobody knows', [...lines.slice(0, -1), '{"table":"dreams","columns":["id"]}'], /not known here/],
      [
        'a column that nobody knows',
        lines.slice(0, -1).map((line) => line.replace('"columns":["id","name"', '"columns":["nome","name"')),
        /not known here/,
      ],
      ['a later format', [(lines[0] ?? '').replace('"lingtai_archive":1', '"lingtai_archive":2'), ...lines.slice(1, -1)], /format 2/],
    ]
    for (const [what, body, refusal] of attempts) {
      await expect(record.archive.in(write(body)), what).rejects.toThrow(refusal)
    }
    await expectUntouched(foundation)
    await foundation.lifecycle.close()
  })

  it('takes what lacks a column that is new, and what has no rows of a table that is new', async () => {
    const older = tables(lines).flatMap(({ table, columns, rows }) => {
      if (table === 'kill_flags') return []
      const at = columns.indexOf('locale')
      const keep = <Value>(values: readonly Value[]): Value[] =>
        table === 'owners' ? values.filter((_, index) => index !== at) : [...values]
      return [JSON.stringify({ table, columns: keep(columns) }), ...rows.map((row) => JSON.stringify(keep(row)))]
    })
    const { foundation } = await restored(write([lines[0] ?? '', ...older]))
    expect(await foundation.database.query('SELECT DISTINCT locale FROM owners')).toEqual([{ locale: 'en' }])
    await foundation.lifecycle.close()
  })

  it('does not bring back what was erased after it was made', async () => {
    const [content] = await source.system.database.query<{ id: string }>(`SELECT id FROM contents WHERE body LIKE '灯塔%'`)
    await source.system.database.run(() => source.system.contents.erase({ ids: [content?.id ?? ''], cause: 'test' }))
    const ledger = source.system.record.ledger.path
    await vi.waitFor(() => expect(readFileSync(ledger, 'utf8')).toContain(content?.id), { timeout: 20_000 })
    const { foundation, answer } = await restored(archived, ledger)
    expect(answer).toMatchObject({ report: { intact: true } })
    expect(answer.erased).toBeGreaterThan(0)
    const [row] = await foundation.database.query<{ body: string | null; erased: boolean }>(
      'SELECT body, erased_at IS NOT NULL AS erased FROM contents WHERE id = $1::uuid',
      [content?.id ?? ''],
    )
    expect(row).toEqual({ body: null, erased: true })
    expect(JSON.stringify(await foundation.database.query('SELECT body FROM contents'))).not.toContain('灯塔')
    await foundation.lifecycle.close()
  })

  it('is one moment of an instance that goes on writing', async () => {
    const file = join(source.system.config.home, 'moving.jsonl')
    const talking = Promise.all(
      Array.from({ length: 3 }, async (_, index) => askAndHear(source, (await newTree(source)).id, `and ${index}?`)),
    )
    await source.system.record.archive.out(file)
    await talking
    const { foundation, answer } = await restored(file)
    expect(answer.report.faults).toEqual([])
    await foundation.lifecycle.close()
  })
})
