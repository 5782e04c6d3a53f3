import { isIP } from 'node:net'

/** What an address is good for: `public` can be reached from anywhere; `link_local` is refused whoever asks (decision 34). */
export type AddressKind = 'public' | 'link_local' | 'loopback' | 'not_public'

type Range = readonly [base: string, bits: number]

/** IPv4 that is not on the public internet (IANA special-purpose registry, multicast, reserved). */
const notPublic4: readonly Range[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Inside 2000::/3, what is no host of the public internet: protocol assignments (Teredo among them), documentation. */
const notPublic6: readonly Range[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
]

/** IPv6 forms that carry an IPv4 address, and where in the 16 bytes it stands: mapped, translated, compatible, NAT64, 6to4. */
const carriers: readonly (readonly [base: string, bits: number, at: number])[] = [
  ['::ffff:0:0', 96, 12],
  ['::ffff:0:0:0', 96, 12],
  ['64:ff9b::', 96, 12],
  ['2002::', 16, 2],
  ['::', 96, 12],
]

/** Judges an address as `node:dns` or a URL writes it; anything that is no address is not public. */
export function kindOfAddress(address: string): AddressKind {
  const plain = withoutBrackets(address)
  const version = isIP(plain)
  if (version === 4) return kindOf4(bytesOf4(plain))
  if (version !== 6 || plain.includes('%')) return version === 6 ? 'link_local' : 'not_public'
  return kindOf6(bytesOf6(plain))
}

/** One spelling for each address, for comparing: 4 bytes for IPv4 in any guise, 16 for the rest; null for what is no address. */
export function addressKey(address: string): string | null {
  const plain = withoutBrackets(address)
  const version = isIP(plain)
  if (version === 4) return Buffer.from(bytesOf4(plain)).toString('hex')
  if (version !== 6) return null
  const bytes = bytesOf6(plain.replace(/%.*$/, ''))
  return Buffer.from(inRange(bytes, bytesOf6('::ffff:0:0'), 96) ? bytes.slice(12) : bytes).toString('hex')
}

function withoutBrackets(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1')
}

function kindOf4(bytes: readonly number[]): AddressKind {
  if (bytes[0] === 127) return 'loopback'
  if (bytes[0] === 169 && bytes[1] === 254) return 'link_local'
  return notPublic4.some(([base, bits]) => inRange(bytes, bytesOf4(base), bits)) ? 'not_public' : 'public'
}

function kindOf6(bytes: readonly number[]): AddressKind {
  if (inRange(bytes, bytesOf6('::1'), 128)) return 'loopback'
  if (inRange(bytes, bytesOf6('fe80::'), 10)) return 'link_local'
  const carrier = carriers.find(([base, bits]) => inRange(bytes, bytesOf6(base), bits))
  if (carrier) return kindOf4(bytes.slice(carrier[2], carrier[2] + 4))
  const isGlobal = inRange(bytes, bytesOf6('2000::'), 3)
  return isGlobal && !notPublic6.some(([base, bits]) => inRange(bytes, bytesOf6(base), bits)) ? 'public' : 'not_public'
}

function bytesOf4(address: string): number[] {
  return address.split('.').map(Number)
}

/** The 16 bytes of a valid address without a zone. */
function bytesOf6(address: string): number[] {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address)
  const [one = 0, two = 0, three = 0, four = 0] = bytesOf4(dotted?.[2] ?? '0.0.0.0')
  const text = dotted ? `${dotted[1]}${((one << 8) | two).toString(16)}:${((three << 8) | four).toString(16)}` : address
  const [head = '', tail] = text.split('::')
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'))
  const [left, right] = [groups(head), groups(tail ?? '')]
  const all = tail === undefined ? left : [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
  return all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff])
}

function inRange(bytes: readonly number[], base: readonly number[], bits: number): boolean {
  for (let at = 0, left = bits; left > 0; at++, left -= 8) {
    const mask = left >= 8 ? 0xff : (0xff << (8 - left)) & 0xff
    if (((bytes[at] ?? 0) & mask) !== ((base[at] ?? 0) & mask)) return false
  }
  return true
}
