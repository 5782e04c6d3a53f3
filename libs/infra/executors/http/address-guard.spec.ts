import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AddressGuard, AddressRefusedError } from './address-guard.ts'
import type { AddressGuardOptions } from './address-guard.ts'
import { addressKey, kindOfAddress } from './ip-address.ts'

describe('kindOfAddress', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['172.15.255.255', 'public'],
    ['172.32.0.1', 'public'],
    ['100.63.255.255', 'public'],
    ['2606:4700::1111', 'public'],
    ['::ffff:8.8.8.8', 'public'],
    ['64:ff9b::808:808', 'public'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['::127.0.0.1', 'loopback'],
    ['::ffff:0:127.0.0.1', 'loopback'],
    ['64:ff9b::7f00:1', 'loopback'],
    ['2002:7f00:1::', 'loopback'],
    ['169.254.169.254', 'link_local'],
    ['::ffff:169.254.169.254', 'link_local'],
    ['64:ff9b::a9fe:a9fe', 'link_local'],
    ['2002:a9fe:a9fe::1', 'link_local'],
    ['fe80::1', 'link_local'],
    ['febf::1', 'link_local'],
    ['fe80::1%eth0', 'link_local'],
    ['0.0.0.0', 'not_public'],
    ['10.1.2.3', 'not_public'],
    ['100.64.0.1', 'not_public'],
    ['172.16.0.1', 'not_public'],
    ['192.168.1.1', 'not_public'],
    ['192.0.2.1', 'not_public'],
    ['198.19.255.255', 'not_public'],
    ['224.0.0.1', 'not_public'],
    ['255.255.255.255', 'not_public'],
    ['::', 'not_public'],
    ['::ffff:10.0.0.1', 'not_public'],
    ['fc00::1', 'not_public'],
    ['fd00:ec2::254', 'not_public'],
    ['fec0::1', 'not_public'],
    ['ff02::1', 'not_public'],
    ['2001:db8::1', 'not_public'],
    ['2001::1', 'not_public'],
    ['100::1', 'not_public'],
    ['64:ff9b:1::1', 'not_public'],
    ['4000::1', 'not_public'],
    ['example.com', 'not_public'],
    ['', 'not_public'],
  ])('%s is %s', (address, kind) => {
    expect(kindOfAddress(address)).toBe(kind)
  })

  it('sees one address behind every way of writing it', () => {
    const octet = fc.integer({ min: 0, max: 255 })
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
        const dotted = octets.join('.')
        const hex = `${((octets[0] << 8) | octets[1]).toString(16)}:${((octets[2] << 8) | octets[3]).toString(16)}`
        for (const guise of [`::ffff:${dotted}`, `::ffff:${hex}`, `0:0:0:0:0:ffff:${hex}`, `64:ff9b::${hex}`, `[::ffff:${dotted}]`]) {
          expect(kindOfAddress(guise)).toBe(kindOfAddress(dotted))
        }
        expect(addressKey(`::ffff:${dotted}`)).toBe(addressKey(dotted))
      }),
    )
  })
})

function guardOf(answers: Readonly<Record<string, readonly string[]>> = {}, options: Partial<AddressGuardOptions> = {}) {
  const asked: string[] = []
  const guard = new AddressGuard({
    allowed: new Set(),
    ownPorts: () => [3000],
    ownAddresses: () => ['127.0.0.1', '203.0.114.9', 'fe80::5'],
    resolve: async (hostname) => {
      asked.push(hostname)
      const found = answers[hostname]
      if (!found) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
      return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    },
    ...options,
  })
  return { guard, asked }
}

async function refusalOf(guard: AddressGuard, url: string): Promise<string> {
  try {
    const pinned = await guard.pin(guard.read(url))
    return pinned.address
  } catch (error) {
    if (error instanceof AddressRefusedError) return error.code
    throw error
  }
}

describe('AddressGuard', () => {
  it('binds a name to the first of its addresses, asked for once', async () => {
    const { guard, asked } = guardOf({ 'api.example': ['203.0.114.1', '2606:4700::1'] })
    expect(await guard.pin(new URL('https://api.example/x'))).toEqual({ address: '203.0.114.1', family: 4 })
    expect(asked).toEqual(['api.example'])
  })

  it.each([
    ['http://127.0.0.1/', 'address_not_public'],
    ['http://2130706433/', 'address_not_public'],
    ['http://0x7f.1/', 'address_not_public'],
    ['http://017700000001/', 'address_not_public'],
    ['http://[::ffff:127.0.0.1]/', 'address_not_public'],
    ['http://[::]:80/', 'address_not_public'],
    ['http://169.254.169.254/latest/meta-data', 'address_link_local'],
    ['http://[fe80::1]/', 'address_link_local'],
    ['http://inside.example/', 'address_not_public'],
    ['http://mixed.example/', 'address_not_public'],
    ['http://metadata.example/', 'address_link_local'],
    ['http://nowhere.example/', 'name_not_resolved'],
    ['http://empty.example/', 'name_not_resolved'],
    ['ftp://8.8.8.8/', 'scheme_refused'],
    ['file:///etc/passwd', 'scheme_refused'],
    ['data:text/plain,x', 'scheme_refused'],
    ['https://user:word@8.8.8.8/', 'credentials_in_url'],
    ['not a url', 'url_invalid'],
    ['https://8.8.8.8/', '8.8.8.8'],
  ])('%s: %s', async (url, expected) => {
    const { guard } = guardOf({
      'inside.example': ['10.0.0.1'],
      'mixed.example': ['203.0.114.1', '192.168.0.1'],
      'metadata.example': ['169.254.169.254'],
      'empty.example': [],
    })
    expect(await refusalOf(guard, url)).toBe(expected)
  })

  it('lets the operator list host and port together, never link-local and never our own port', async () => {
    const allowed = new Set(['localhost:11434', '127.0.0.1:3000', '127.0.0.1:8080', '169.254.169.254:80', 'box.example:80'])
    const { guard } = guardOf(
      { localhost: ['127.0.0.1', '::1'], 'box.example': ['10.0.0.1'], 'self.example': ['203.0.114.9'] },
      { allowed },
    )
    expect(await refusalOf(guard, 'http://localhost:11434/v1')).toBe('127.0.0.1')
    expect(await refusalOf(guard, 'http://LOCALHOST.:11434/v1')).toBe('127.0.0.1')
    expect(await refusalOf(guard, 'http://localhost:11435/v1')).toBe('address_not_public')
    expect(await refusalOf(guard, 'http://127.0.0.1:8080/')).toBe('127.0.0.1')
    expect(await refusalOf(guard, 'http://box.example/')).toBe('10.0.0.1')
    expect(await refusalOf(guard, 'https://box.example/')).toBe('address_not_public')
    expect(await refusalOf(guard, 'http://127.0.0.1:3000/')).toBe('own_port')
    expect(await refusalOf(guard, 'http://[::ffff:127.0.0.1]:3000/')).toBe('own_port')
    expect(await refusalOf(guard, 'http://0.0.0.0:3000/')).toBe('own_port')
    expect(await refusalOf(guard, 'http://self.example:3000/')).toBe('own_port')
    expect(await refusalOf(guard, 'http://self.example/')).toBe('203.0.114.9')
    expect(await refusalOf(guard, 'http://169.254.169.254/')).toBe('address_link_local')
  })
})
