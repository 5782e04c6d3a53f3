import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OffTransactionError, TransactionAbortedError, TransactionEndedError } from '#infra/prisma/database'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

describe.each(portTiers)('UnitOfWork on the %s tier', (name) => {
  let tier: PortTier
  beforeAll(async () => {
    tier = await openPortTier(name)
  })
  afterAll(() => tier.close())

  const addOwner = (id: string) => tier.database.execute(`INSERT INTO owners (id, name, role) VALUES ($1::uuid, $2, 'user')`, [id, id])
  /** Looked at through another pool, as another process would. */
  const isThere = async (id: string): Promise<boolean> =>
    (await tier.replica().database.query('SELECT 1 FROM owners WHERE id = $1::uuid', [id])).length === 1

  it('commits everything that was done inside, and shows none of it before', async () => {
    const [first, second] = [tier.ids.next(), tier.ids.next()]
    const answer = await tier.database.run(async () => {
      await addOwner(first)
      // PGlite has one connection's transaction at a time: looking from outside would wait for this one.
      if (name === 'full') expect(await isThere(first)).toBe(false)
      await addOwner(second)
      return 'done'
    })
    expect(answer).toBe('done')
    expect([await isThere(first), await isThere(second)]).toEqual([true, true])
  })

  it('rolls everything back when the work throws, and hands the error on', async () => {
    const id = tier.ids.next()
    const work = tier.database.run(async () => {
      await addOwner(id)
      throw new Error('changed my mind')
    })
    await expect(work).rejects.toThrow('changed my mind')
    expect(await isThere(id)).toBe(false)
  })

  it('rolls back what came before a statement that the database refuses', async () => {
    const id = tier.ids.next()
    await expect(
      tier.database.run(async () => {
        await addOwner(id)
        await addOwner(id)
      }),
    ).rejects.toThrow(/unique|duplicate/i)
    expect(await isThere(id)).toBe(false)
    const next = tier.ids.next()
    await tier.database.run(() => addOwner(next))
    expect(await isThere(next)).toBe(true)
  })

  it('joins a nested unit to the outer one: one commit, one rollback', async () => {
    const [outer, inner] = [tier.ids.next(), tier.ids.next()]
    await expect(
      tier.database.run(async () => {
        await addOwner(outer)
        await tier.database.run(() => addOwner(inner))
        throw new Error('after the inner one')
      }),
    ).rejects.toThrow('after the inner one')
    expect([await isThere(outer), await isThere(inner)]).toEqual([false, false])
  })

  it('calls afterCommit once everything is committed, in order, and never when it rolled back', async () => {
    const told: string[] = []
    const id = tier.ids.next()
    await tier.database.run(async () => {
      tier.database.afterCommit(() => told.push('first'))
      await tier.database.run(async () => {
        tier.database.afterCommit(() => told.push('second'))
        await addOwner(id)
      })
      expect(told).toEqual([])
    })
    expect(told).toEqual(['first', 'second'])
    await tier.database
      .run(() => {
        tier.database.afterCommit(() => told.push('never'))
        return Promise.reject(new Error('no'))
      })
      .catch((error: Error) => told.push(error.message))
    expect(told).toEqual(['first', 'second', 'no'])
    tier.database.afterCommit(() => told.push('outside: at once'))
    expect(told.at(-1)).toBe('outside: at once')
  })

  it('calls afterRollback with the transaction gone and before the error is heard, so that what it writes stays', async () => {
    const [refused, kept] = [tier.ids.next(), tier.ids.next()]
    const told: string[] = []
    await tier.database
      .run(async () => {
        await addOwner(refused)
        await tier.database.afterRollback(async () => {
          expect(tier.database.inTransaction).toBe(false)
          await addOwner(kept)
          told.push('written')
        })
        throw new Error('refused')
      })
      .catch((error: Error) => told.push(error.message))
    expect(told).toEqual(['written', 'refused'])
    expect([await isThere(refused), await isThere(kept)]).toEqual([false, true])
    await tier.database.run(async () => {
      await tier.database.afterRollback(async () => void told.push('committed'))
    })
    expect(told).toEqual(['written', 'refused'])
  })

  it('refuses a query around the transaction it stands in, which on one connection would wait for itself', async () => {
    await expect(tier.database.run(() => tier.database.direct('SELECT 1', []))).rejects.toThrow(OffTransactionError)
    expect(await tier.database.direct('SELECT 1 AS one', [])).toEqual([{ one: 1 }])
  })

  it('keeps nothing of a unit that went on after the database had refused a statement, and says so', async () => {
    const [first, second] = [tier.ids.next(), tier.ids.next()]
    const work = tier.database.run(async () => {
      await addOwner(first)
      await addOwner(first).catch(() => undefined)
      return 'as if nothing had happened'
    })
    await expect(work).rejects.toThrow(TransactionAbortedError)
    await tier.database.run(() => addOwner(second))
    expect([await isThere(first), await isThere(second)]).toEqual([false, true])
  })

  it('refuses what goes on after its unit of work has ended', async () => {
    let late: () => Promise<unknown> = () => Promise.resolve()
    await tier.database.run(async () => {
      const gate = Promise.withResolvers<void>()
      const left = gate.promise.then(() => addOwner(tier.ids.next()))
      late = () => {
        gate.resolve()
        return left
      }
      await addOwner(tier.ids.next())
    })
    await expect(late()).rejects.toThrow(TransactionEndedError)
  })

  it('takes statements that do not wait for each other together, in order', async () => {
    const ids = Array.from({ length: 5 }, () => tier.ids.next())
    await tier.database.run(async () => {
      const written = await Promise.all([
        ...ids.map(addOwner),
        tier.database.execute('UPDATE owners SET locale = $1 WHERE id = ANY ($2::uuid[])', ['fr', ids]),
      ])
      expect(written).toEqual([1, 1, 1, 1, 1, 5])
    })
    const failing = tier.database.run(() => Promise.all([addOwner(tier.ids.next()), addOwner(ids[0] ?? ''), addOwner(tier.ids.next())]))
    await expect(failing).rejects.toThrow(/unique|duplicate/i)
  })

  it('keeps the model calls of Prisma in the same transaction', async () => {
    const id = tier.ids.next()
    const owner = { id, name: id, role: 'user' }
    await expect(
      tier.database.run(async () => {
        await tier.database.client.owners.create({ data: owner })
        expect(await tier.database.query('SELECT 1 FROM owners WHERE id = $1::uuid', [id])).toHaveLength(1)
        expect(await tier.database.client.owners.findFirst({ where: { id } })).toMatchObject(owner)
        throw new Error('changed my mind')
      }),
    ).rejects.toThrow('changed my mind')
    expect(await tier.database.client.owners.findFirst({ where: { id } })).toBeNull()
    await tier.database.run(async () => {
      expect(await tier.database.client.owners.createMany({ data: [owner], skipDuplicates: true })).toEqual({ count: 1 })
      expect(await tier.database.client.owners.updateMany({ where: { id }, data: { locale: 'fr' } })).toEqual({ count: 1 })
      expect(await tier.database.client.owners.deleteMany({ where: { id } })).toEqual({ count: 1 })
    })
    // Prisma would want a connection of its own for it.
    const own = tier.database.run(() => tier.database.client.$transaction((inner) => inner.owners.findFirst()))
    await expect(own).rejects.toThrow(OffTransactionError)
  })

  it('keeps units that run at once apart', async () => {
    const ids = Array.from({ length: 12 }, () => tier.ids.next())
    const results = await Promise.allSettled(
      ids.map((id, index) =>
        tier.database.run(async () => {
          await addOwner(id)
          if (index % 3 === 0) throw new Error('every third one')
        }),
      ),
    )
    expect(results.filter((result) => result.status === 'rejected')).toHaveLength(4)
    const found = await tier.database.query<{ id: string }>('SELECT id::text FROM owners WHERE id = ANY ($1::uuid[])', [ids])
    expect(found.map((row) => row.id).toSorted()).toEqual(ids.filter((_, index) => index % 3 !== 0).toSorted())
  })

  it('gives rows in the same types on every path, inside a transaction and out', async () => {
    const statement = `SELECT 9007199254740991::int8 AS big, 1.5::numeric AS number, '2026-01-02T03:04:05.678Z'::timestamptz AS at,
      '\\x00ff'::bytea AS bytes, '{"a": [1]}'::jsonb AS json, ARRAY[1, 2]::int8[] AS list, true AS yes, NULL::text AS none,
      '0198c0de-0000-7000-8000-000000000001'::uuid AS id`
    const expected = {
      big: 9007199254740991,
      number: 1.5,
      at: new Date('2026-01-02T03:04:05.678Z'),
      bytes: Buffer.from([0, 255]),
      json: { a: [1] },
      list: [1, 2],
      yes: true,
      none: null,
      id: '0198c0de-0000-7000-8000-000000000001',
    }
    expect(await tier.database.query(statement)).toEqual([expected])
    expect(await tier.database.run(() => tier.database.query(statement))).toEqual([expected])
    expect(await tier.database.direct(statement, [])).toEqual([expected])
  })

  it('takes each type of parameter on every path', async () => {
    const statement = `SELECT $1::text AS text, $2::int8 AS number, $3::timestamptz AS at, $4::bytea AS bytes, $5::uuid[] AS ids, $6::text AS none,
      $7::bool AS yes, $8::jsonb AS json, $9::text[] AS texts, $10::float8 AS half, $11::text[] AS holes`
    const at = new Date('2026-01-02T03:04:05.678Z')
    const id = tier.ids.next()
    const params = ['灵台', 12, at, new Uint8Array([0, 255]), [id], null, true, '{"a":1}', ['x', '"y"', 'z\\,{}'], 0.5, ['a', null]]
    const expected = {
      text: '灵台',
      number: 12,
      at,
      bytes: Buffer.from([0, 255]),
      ids: [id],
      none: null,
      yes: true,
      json: { a: 1 },
      texts: ['x', '"y"', 'z\\,{}'],
      half: 0.5,
      holes: ['a', null],
    }
    expect(await tier.database.query(statement, params)).toEqual([expected])
    expect(await tier.database.run(() => tier.database.query(statement, params))).toEqual([expected])
    expect(await tier.database.direct(statement, params)).toEqual([expected])
  })

  it('refuses a parameter over 1 MB before it is sent (decision 7)', async () => {
    await expect(tier.database.query('SELECT length($1)', ['x'.repeat(1024 * 1024 + 1)])).rejects.toThrow(RangeError)
    const [row] = await tier.database.query<{ length: number }>('SELECT length($1::text) AS length', ['x'.repeat(1024 * 1024)])
    expect(row?.length).toBe(1024 * 1024)
  })
})
