import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { AnchorBody, SignedAnchor } from '#contracts'
import type { RunAccepted, VerifyReport } from '#contracts'
import { systemScheduler } from '#infra/system/clock'
import type { Scheduler } from '#kernel/ports/clock'
import { headLeaf } from '#kernel/record/anchor'
import { canonicalJson } from '#kernel/record/canonical-json'
import { chainHash, sha256Hex } from '#kernel/record/chain'
import { MerkleRoot } from '#kernel/record/merkle'
import { FIRST_ANCHOR_MS } from '../../apps/bff/composition/keep-anchors.ts'
import { recorded } from '../support/plant.ts'
import { askAndHear, call, newTree } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

/* Decision 18: a tail that was cut off, or a stream that was taken away whole, leaves a chain that is right in itself. Anchors miss it. */
vi.setConfig({ testTimeout: 120_000 })

let lingtai: TestSystem
let told: RunAccepted
const made: SignedAnchor[] = []

beforeAll(async () => {
  // Anchors are made when these tests say so, and not beside them.
  const scheduler: Scheduler = {
    after: (milliseconds, callback) => (milliseconds === FIRST_ANCHOR_MS ? () => undefined : systemScheduler.after(milliseconds, callback)),
  }
  lingtai = await startTestSystem({ overrides: { scheduler } })
  for (let count = 0; count < 3; count++) {
    told = (await askAndHear(lingtai, (await newTree(lingtai)).id, `What is ${count}?`)).accepted
    await anchor()
  }
})
afterAll(() => lingtai.close())

async function anchor(): Promise<SignedAnchor> {
  // Jobs may still be writing to other streams, which is news as well.
  const signed = await lingtai.system.record.anchors.anchor()
  if (!signed) throw new Error('there was nothing to anchor')
  made.push(signed)
  return signed
}

const run = (): string => `run:${told.run_id}`
const newest = (): SignedAnchor => made.at(-1) as SignedAnchor
const filePath = (): string => join(lingtai.system.config.home, 'anchors.jsonl')
const filed = (): string[] => readFileSync(filePath(), 'utf8').trimEnd().split('\n')

type Execute = (sql: string, params?: Parameters<typeof lingtai.system.database.execute>[1]) => Promise<number>

/** Lets somebody who may do everything in the database change something, verifies, and takes everything back. */
async function verifyAfter(tamper: (execute: Execute) => Promise<unknown>): Promise<VerifyReport> {
  const { database, conversation } = lingtai.system
  let report: VerifyReport | undefined
  const undone = new Error('taken back')
  await database
    .run(async () => {
      for (const table of ['events', 'streams', 'anchors', 'anchor_heads']) {
        await database.execute(`ALTER TABLE ${table} DISABLE TRIGGER USER`)
      }
      await tamper(async (sql, params) => {
        const rows = await database.execute(sql, params)
        expect(rows, sql).toBeGreaterThan(0)
        return rows
      })
      report = await conversation.verify.verifyAll()
      throw undone
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error
    })
  if (!report) throw new Error('nothing was verified')
  return report
}

/** Takes the last events of the run away and puts its head back, so that the chain is right in itself. */
async function cutTail(execute: Execute, events = 1): Promise<void> {
  await execute(`DELETE FROM events WHERE stream = $1 AND seq > (SELECT seq - $2 FROM streams WHERE stream = $1)`, [run(), events])
  await execute(
    `UPDATE streams s SET seq = e.seq, hash = e.hash FROM events e
     WHERE s.stream = $1 AND e.stream = s.stream AND e.seq = (SELECT max(seq) FROM events WHERE stream = $1)`,
    [run()],
  )
}

function insertAnchor(execute: Execute, signed: SignedAnchor): Promise<number> {
  return execute(`INSERT INTO anchors (seq, canonical, hash, public_key, signature) VALUES ($1, $2, $3, $4, $5)`, [
    signed.seq,
    signed.canonical,
    Buffer.from(signed.hash, 'hex'),
    Buffer.from(signed.public_key, 'base64'),
    Buffer.from(signed.signature, 'base64'),
  ])
}

function signedBy(key: KeyObject, body: AnchorBody): SignedAnchor {
  const canonical = canonicalJson(body)
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return {
    seq: body.seq,
    canonical,
    hash: sha256Hex(canonical),
    public_key: Buffer.from(x ?? '', 'base64url').toString('base64'),
    signature: sign(null, Buffer.from(canonical), key).toString('base64'),
  }
}

const bodyOf = (signed: SignedAnchor): AnchorBody => AnchorBody.parse(JSON.parse(signed.canonical))
const faultsOf = (report: VerifyReport): string[] => report.faults.map(({ stream, seq, fault }) => `${stream} ${seq} ${fault}`)

describe('anchors', () => {
  it('are numbered, chained, signed, recorded as events, and stand in the file outside the database', async () => {
    const rows = await lingtai.system.database.query<{ seq: number; canonical: string }>('SELECT seq, canonical FROM anchors ORDER BY seq')
    expect(rows.map((row) => row.seq)).toEqual(rows.map((_, index) => index + 1))
    expect(filed().map((line) => SignedAnchor.parse(JSON.parse(line)).canonical)).toEqual(rows.map((row) => row.canonical))
    const bodies = rows.map((row) => AnchorBody.parse(JSON.parse(row.canonical)))
    expect(bodies.map((body) => body.previous_hash)).toEqual(['0'.repeat(64), ...rows.slice(0, -1).map((row) => sha256Hex(row.canonical))])
    const events = await recorded(lingtai, `admin:${bodies[0]?.instance_id}`, 'anchor.signed')
    expect(events.map((event) => [event.anchor, event.previous_hash])).toEqual(bodies.map((body) => [body.seq, body.previous_hash]))
  })

  it('cover the heads that moved since the one before, and nothing where nothing moved', async () => {
    const { anchors } = lingtai.system.record
    await vi.waitFor(async () => expect(await anchors.anchor()).toBeNull(), { timeout: 20_000, interval: 200 })
    const { accepted } = await askAndHear(lingtai, (await newTree(lingtai)).id, 'One more.')
    const signed = await anchor()
    const heads = await lingtai.system.database.query<{ stream: string; seq: number; hash: string }>(
      `SELECT stream, seq, encode(hash, 'hex') AS hash FROM anchor_heads WHERE anchor_seq = $1 ORDER BY stream`,
      [signed.seq],
    )
    expect(heads.map((head) => head.stream)).toContain(`run:${accepted.run_id}`)
    expect(heads.map((head) => head.stream)).not.toContain(run())
    const tree = new MerkleRoot()
    for (const head of heads) tree.add(headLeaf(head))
    expect(bodyOf(signed)).toMatchObject({ heads: heads.length, heads_root: Buffer.from(tree.root()).toString('hex') })
  })

  it('are made by one process at a time, each covering every head', async () => {
    await askAndHear(lingtai, (await newTree(lingtai)).id, 'And another.')
    const { anchors } = lingtai.system.record
    const before = newest().seq
    const answers = (await Promise.all([anchors.anchor(), anchors.anchor(), anchors.anchor()])).flatMap((signed) => signed ?? [])
    made.push(...answers)
    expect(answers.map((signed) => signed.seq)).toEqual(answers.map((_, index) => before + index + 1))
    expect(answers.length).toBeGreaterThan(0)
    const report = await call<VerifyReport>(lingtai, 'POST', '/v1/admin/verify', {})
    expect(report).toMatchObject({ intact: true, anchors: { count: newest().seq, filed: newest().seq } })
  })

  it('are found in the file by a process that did not make them, where it died before it wrote them there, or in the middle of a line', async () => {
    const whole = readFileSync(filePath(), 'utf8')
    const { anchors } = lingtai.system.record
    writeFileSync(filePath(), whole.slice(0, whole.length - 200))
    expect(await anchors.keepFile()).toBe(1)
    expect(await anchors.keepFile()).toBe(0)
    expect(faultsOf(await verifyAfter(async () => undefined))).toEqual([])
    writeFileSync(filePath(), whole)
  })

  it.each(['UPDATE anchors SET seq = seq', 'DELETE FROM anchors', 'DELETE FROM anchor_heads', 'UPDATE anchor_heads SET seq = 1'])(
    'are never changed: %s',
    async (statement) => {
      await expect(lingtai.system.database.execute(statement)).rejects.toThrow(/append-only/)
    },
  )
})

describe('verify', () => {
  const runSeq = async (): Promise<number> => (await lingtai.system.log.head(run()))?.seq ?? 0

  it('finds nothing where nothing was changed', async () => {
    expect(faultsOf(await verifyAfter(async () => undefined))).toEqual([])
  })

  it('finds a tail that was cut off with its head put back', async () => {
    expect(faultsOf(await verifyAfter((execute) => cutTail(execute)))).toEqual([`${run()} ${await runSeq()} anchored_head`])
  })

  it('finds a whole stream that is gone with its head, and lets nobody begin it anew', async () => {
    const report = await verifyAfter(async (execute) => {
      await execute('DELETE FROM events WHERE stream = $1', [run()])
      await execute('DELETE FROM streams WHERE stream = $1', [run()])
    })
    expect(faultsOf(report)).toEqual([`${run()} ${await runSeq()} anchored_head`])
    const { database, conversation, log } = lingtai.system
    const undone = new Error('taken back')
    await expect(
      database.run(async () => {
        for (const table of ['events', 'streams']) await database.execute(`ALTER TABLE ${table} DISABLE TRIGGER USER`)
        await database.execute('DELETE FROM events WHERE stream = $1', [run()])
        await database.execute('DELETE FROM streams WHERE stream = $1', [run()])
        await conversation.verify.verifyAll()
        expect(await log.head(run())).toMatchObject({ seq: 0, quarantined: true })
        throw undone
      }),
    ).rejects.toBe(undone)
  })

  it('finds an end that was written anew with right hashes', async () => {
    const report = await verifyAfter(async (execute) => {
      const [last] = (await lingtai.system.log.read(run(), {})).slice(-1)
      if (!last) throw new Error('the run has no events')
      const canonical = last.canonical.replace(/"delta_count":\d+/, '"delta_count":999')
      const hash = chainHash(last.prev_hash, canonical)
      const position = [run(), last.record.seq]
      await execute(
        `UPDATE events SET canonical = $3::text, payload = $3::text::jsonb -> 'payload', hash = $4 WHERE stream = $1 AND seq = $2`,
        [...position, canonical, hash],
      )
      await execute('UPDATE streams SET hash = $3 WHERE stream = $1 AND seq = $2', [...position, hash])
    })
    expect(faultsOf(report)).toEqual([`${run()} ${await runSeq()} anchored_head`])
  })

  it.each([
    ['the last', () => newest().seq],
    ['one in the middle', () => 2],
    ['the first', () => 1],
  ])('misses an anchor that was removed: %s', async (_which, seq) => {
    const report = await verifyAfter(async (execute) => {
      await execute('DELETE FROM anchor_heads WHERE anchor_seq = $1', [seq()])
      await execute('DELETE FROM anchors WHERE seq = $1', [seq()])
    })
    expect(faultsOf(report)).toEqual([`anchors ${seq()} anchor_missing`])
  })

  it('misses the newest anchor by the log alone, where the file is another’s', async () => {
    const whole = readFileSync(filePath(), 'utf8')
    writeFileSync(filePath(), '')
    const report = await verifyAfter(async (execute) => {
      await execute('DELETE FROM anchor_heads WHERE anchor_seq = $1', [newest().seq])
      await execute('DELETE FROM anchors WHERE seq = $1', [newest().seq])
    })
    writeFileSync(filePath(), whole)
    expect(faultsOf(report)).toEqual([`anchors ${newest().seq} anchor_missing`])
    expect(report.anchors.filed).toBe(0)
  })

  it('finds heads that were taken out of an anchor, or changed in it', async () => {
    const seq = made[2]?.seq ?? 0
    for (const change of [
      `DELETE FROM anchor_heads WHERE anchor_seq = $1 AND stream = $2`,
      `UPDATE anchor_heads SET hash = sha256('x') WHERE anchor_seq = $1 AND stream = $2`,
    ]) {
      const report = await verifyAfter((execute) => execute(change, [seq, run()]))
      expect(faultsOf(report)).toContain(`anchors ${seq} anchor_altered`)
    }
  })

  it('finds a byte of an anchor changed, in the table and in the file', async () => {
    const changed = newest().canonical.replace('"heads":', '"heads":1')
    for (const set of [
      `canonical = '${changed}'`,
      `canonical = '${changed}', hash = decode('${sha256Hex(changed)}', 'hex')`,
      'hash = set_bit(hash, 7, 1 - get_bit(hash, 7))',
    ]) {
      const report = await verifyAfter((execute) => execute(`UPDATE anchors SET ${set} WHERE seq = $1`, [newest().seq]))
      expect(faultsOf(report)).toEqual([`anchors ${newest().seq} anchor_altered`])
    }
    const whole = readFileSync(filePath(), 'utf8')
    for (const [lines, seqs] of [
      [filed().with(1, (filed()[1] ?? '').replace('heads\\":', 'heads\\":1')), [2]],
      [filed().toSpliced(1, 1), [3]],
    ] as const) {
      writeFileSync(filePath(), `${lines.join('\n')}\n`)
      const report = await verifyAfter(async () => undefined)
      writeFileSync(filePath(), whole)
      expect(faultsOf(report)).toEqual(seqs.map((seq) => `anchors ${seq} anchor_altered`))
    }
  })

  it('finds a signature that is not this instance’s, though everything else fits', async () => {
    const attacker = generateKeyPairSync('ed25519').privateKey
    // Whoever may cut the file as well is stopped by the key alone.
    const whole = readFileSync(filePath(), 'utf8')
    const seq = newest().seq
    const report = await verifyAfter(async (execute) => {
      const forged = signedBy(attacker, bodyOf(newest()))
      await execute('UPDATE anchors SET public_key = $2, signature = $3 WHERE seq = $1', [
        seq,
        Buffer.from(forged.public_key, 'base64'),
        Buffer.from(forged.signature, 'base64'),
      ])
      writeFileSync(filePath(), `${filed().slice(0, -1).join('\n')}\n`)
    })
    writeFileSync(filePath(), whole)
    expect(faultsOf(report)).toEqual([`anchors ${seq} anchor_signature`])
    const flipped = await verifyAfter((execute) =>
      execute('UPDATE anchors SET signature = set_bit(signature, 7, 1 - get_bit(signature, 7)) WHERE seq = $1', [seq]),
    )
    expect(faultsOf(flipped)).toEqual([`anchors ${seq} anchor_altered`])
  })

  it('finds an anchor that somebody else added', async () => {
    const attacker = generateKeyPairSync('ed25519').privateKey
    const body = { ...bodyOf(newest()), seq: newest().seq + 1, previous_hash: newest().hash, heads: 1 }
    const stream = 'run:01935f00-0000-7000-8000-00000000000a'
    const tree = new MerkleRoot()
    tree.add(headLeaf({ stream, seq: 1, hash: createHash('sha256').update('x').digest('hex') }))
    const report = await verifyAfter(async (execute) => {
      await insertAnchor(execute, signedBy(attacker, { ...body, heads_root: Buffer.from(tree.root()).toString('hex') }))
      await execute(`INSERT INTO anchor_heads (anchor_seq, stream, seq, hash) VALUES ($1, $2, 1, sha256('x'))`, [body.seq, stream])
    })
    expect(faultsOf(report)).toEqual([`anchors ${body.seq} anchor_signature`, `${stream} 1 anchored_head`])
  })
})
