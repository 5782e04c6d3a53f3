import { describe, expect, it } from 'vitest'
import { isKnownHost } from './host-check.ts'

const local = { address: '127.0.0.1', hosts: [], beyondLoopback: false }
const open = { address: '0.0.0.0', hosts: ['lingtai.example.org'], beyondLoopback: true }

describe('the hosts that name this server', () => {
  it.each(['127.0.0.1:3000', 'localhost', 'LOCALHOST:3000', '[::1]:3000', 'x.localhost', 'localhost.'])('takes %s everywhere', (host) => {
    expect(isKnownHost(host, local)).toBe(true)
    expect(isKnownHost(host, open)).toBe(true)
  })

  it.each([
    undefined,
    '',
    'evil.example',
    'evil.example:3000',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '127.0.0.1:3000@evil.example',
    'a b',
    'localhost:3000:1',
    '[::1',
  ])('refuses %s', (host) => {
    expect(isKnownHost(host, local)).toBe(false)
    expect(isKnownHost(host, open)).toBe(false)
  })

  it('takes addresses and listed names only where others can connect', () => {
    expect(isKnownHost('192.168.1.5:3000', local)).toBe(false)
    expect(isKnownHost('192.168.1.5:3000', open)).toBe(true)
    expect(isKnownHost('[fd00::1]:3000', open)).toBe(true)
    expect(isKnownHost('lingtai.example.org', local)).toBe(false)
    expect(isKnownHost('Lingtai.Example.org:443', open)).toBe(true)
    expect(isKnownHost('other.example.org', open)).toBe(false)
  })
})
