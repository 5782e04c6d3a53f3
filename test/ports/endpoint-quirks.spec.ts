import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { EndpointQuirksRepository } from '#infra/prisma/endpoint-quirks.repository'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier, Stores } from '../support/port-tier.ts'

describe.each(portTiers)('endpoint quirks on the %s tier (decision 39)', (name) => {
  let tier: PortTier
  let other: Stores
  beforeAll(async () => {
    tier = await openPortTier(name)
    other = tier.replica()
  })
  afterAll(() => tier.close())
  beforeEach(() => tier.database.execute('DELETE FROM endpoint_quirks'))

  const at = (stores: Stores, { baseUrl = 'https://models.test/v1', model = 'm' } = {}) =>
    new EndpointQuirksRepository(stores.database, { baseUrl, model })

  it('takes an endpoint for one without any, and looks again until something is known', async () => {
    const quirks = at(tier)
    expect(await quirks.takesStreamOptions()).toBe(true)
    await at(other).keep(false)
    expect(await quirks.takesStreamOptions()).toBe(false)
  })

  it('tells other processes and later starts, of this endpoint and model alone', async () => {
    await at(tier).keep(false)
    expect(await at(other).takesStreamOptions()).toBe(false)
    expect(await at(other, { model: 'another' }).takesStreamOptions()).toBe(true)
    expect(await at(other, { baseUrl: 'https://models.test/v2' }).takesStreamOptions()).toBe(true)
  })

  it('lets a no stand, also where another process saw a yes', async () => {
    const [first, second] = [at(tier), at(other)]
    await first.keep(true)
    await at(other).keep(true)
    expect(await second.takesStreamOptions()).toBe(true)
    await second.keep(false)
    await at(tier).keep(true)
    await first.keep(true)
    await at(other).keep(true)
    expect(await second.takesStreamOptions()).toBe(false)
    expect(await at(tier).takesStreamOptions()).toBe(false)
  })

  it('leaves one row of many processes that find out at once', async () => {
    await Promise.all([true, false, true, false, true].map((takes, index) => at(index % 2 === 0 ? tier : other).keep(takes)))
    expect(await tier.database.query('SELECT takes_stream_options FROM endpoint_quirks')).toEqual([{ takes_stream_options: false }])
  })

  it('keeps no credentials of the address', async () => {
    await at(tier, { baseUrl: 'https://user:pass-word@models.test/v1?key=secret' }).keep(false)
    expect(await tier.database.query('SELECT endpoint FROM endpoint_quirks')).toEqual([{ endpoint: 'https://models.test/v1' }])
  })
})
