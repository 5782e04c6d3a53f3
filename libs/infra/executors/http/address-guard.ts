import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { addressKey, kindOfAddress } from './ip-address.ts'

/** An address that a request may go to, and nowhere else. */
export type PinnedAddress = { address: string; family: 4 | 6 }

export type AddressRefusal =
  'url_invalid' | 'scheme_refused' | 'credentials_in_url' | 'name_not_resolved' | 'address_not_public' | 'address_link_local' | 'own_port'

/** The request may not go there; nothing was sent. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError'
  readonly code: AddressRefusal

  constructor(code: AddressRefusal, options?: ErrorOptions) {
    super(`the address is refused: ${code}`, options)
    this.code = code
  }
}

/** Why the guard refused, where that is what lies behind an error; null for any other. */
export function addressRefusalOf(error: unknown): AddressRefusal | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof AddressRefusedError) return at.code
  }
  return null
}

export type Resolve = (hostname: string) => Promise<readonly { address: string; family: number }[]>

export type AddressGuardOptions = {
  /** `host:port` pairs that the operator listed: they may lie anywhere but link-local. Hosts in lower case, as a URL writes them. */
  allowed: ReadonlySet<string>
  /** Ports that this process listens on; never reached on an address of this machine. */
  ownPorts: () => readonly number[]
  resolve?: Resolve
  /** Addresses of this machine. */
  ownAddresses?: () => readonly string[]
}

/**
 * Where tools may reach (decision 34): a name is resolved once, every address that it has must be allowed, and the request is bound to the
 * first. Whoever connects must use that address, and follow no redirect.
 */
export class AddressGuard {
  readonly #options: Required<AddressGuardOptions>

  constructor(options: AddressGuardOptions) {
    this.#options = { resolve: resolveAll, ownAddresses: addressesOfThisMachine, ...options }
  }

  /** Reads and judges a URL without asking anybody: scheme, credentials, literal addresses. Throws AddressRefusedError. */
  read(text: string): URL {
    if (!URL.canParse(text)) throw new AddressRefusedError('url_invalid')
    const url = new URL(text)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new AddressRefusedError('scheme_refused')
    if (url.username !== '' || url.password !== '') throw new AddressRefusedError('credentials_in_url')
    const host = hostOf(url)
    if (isIP(host) !== 0) this.#judge(url, host)
    return url
  }

  /** The one address that a request to the URL is bound to. Throws AddressRefusedError. */
  async pin(url: URL): Promise<PinnedAddress> {
    this.read(url.href)
    const host = hostOf(url)
    const found = isIP(host) === 0 ? await this.#resolve(host) : [{ address: host, family: isIP(host) }]
    for (const { address } of found) this.#judge(url, address)
    const [first] = found
    if (!first) throw new AddressRefusedError('name_not_resolved')
    return { address: first.address, family: first.family === 6 ? 6 : 4 }
  }

  async #resolve(host: string): Promise<readonly { address: string; family: number }[]> {
    try {
      return await this.#options.resolve(host)
    } catch (cause) {
      throw new AddressRefusedError('name_not_resolved', { cause })
    }
  }

  #judge(url: URL, address: string): void {
    const kind = kindOfAddress(address)
    if (kind === 'link_local') throw new AddressRefusedError('address_link_local')
    const port = portOf(url)
    if (this.#options.ownPorts().includes(port) && (kind === 'loopback' || this.#isOurs(address))) throw new AddressRefusedError('own_port')
    if (kind !== 'public' && !this.#options.allowed.has(`${hostOf(url)}:${port}`)) throw new AddressRefusedError('address_not_public')
  }

  #isOurs(address: string): boolean {
    const key = addressKey(address)
    // The unspecified address means this machine as well.
    return key === null || /^0+$/.test(key) || this.#options.ownAddresses().some((own) => addressKey(own) === key)
  }
}

/** A URL's host without brackets and without the dot of the root. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}

function resolveAll(hostname: string): Promise<{ address: string; family: number }[]> {
  return lookup(hostname, { all: true, verbatim: true })
}

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address))
}
