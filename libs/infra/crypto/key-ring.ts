import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SecretKey } from '#infra/config/secret-keys'
import { readSecretKeys } from '#infra/config/secret-keys'
import type { Ids } from '#kernel/ports/clock'
import type { KeyRing } from './secret-box.ts'

const FILE_NAME = 'secret.key'
const OWN_KEY_ID = 'home'
const KEY_BYTES = 32

/** Keys that the operator gave, and no others: the full tier. */
export class GivenKeys implements KeyRing {
  readonly #keys: readonly SecretKey[]

  constructor(keys: readonly SecretKey[]) {
    this.#keys = keys
  }

  async forSealing(): Promise<SecretKey | null> {
    return this.#keys[0] ?? null
  }

  async find(id: string): Promise<SecretKey | null> {
    return this.#keys.find((key) => key.id === id) ?? null
  }
}

/** The key file exists and holds no key: nothing is made over it, since it may be a damaged copy of the right one. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError'

  constructor(path: string) {
    super(`${path} holds no key: restore it, or take it away together with what was encrypted with it`)
  }
}

/** Keys that the operator gave, else one of the home's own, made when it is first needed and readable by its user alone: the light tier. */
export class HomeKeys implements KeyRing {
  readonly #given: GivenKeys
  readonly #path: string
  readonly #ids: Pick<Ids, 'bytes'>

  constructor({ given, home, ids }: { given: readonly SecretKey[]; home: string; ids: Pick<Ids, 'bytes'> }) {
    this.#given = new GivenKeys(given)
    this.#path = join(home, FILE_NAME)
    this.#ids = ids
  }

  async forSealing(): Promise<SecretKey | null> {
    return (await this.#given.forSealing()) ?? (await this.#own()) ?? this.#make()
  }

  async find(id: string): Promise<SecretKey | null> {
    return (await this.#given.find(id)) ?? (id === OWN_KEY_ID ? this.#own() : null)
  }

  async #own(): Promise<SecretKey | null> {
    let text: string
    try {
      text = await readFile(this.#path, 'utf8')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
      throw error
    }
    const [key] = readSecretKeys(`${OWN_KEY_ID}:${text.trim()}`, () => undefined)
    if (!key) throw new KeyFileError(this.#path)
    return key
  }

  async #make(): Promise<SecretKey> {
    const key = this.#ids.bytes(KEY_BYTES)
    // Never over a file that is there: another of the kind may have been made a moment ago, and what it sealed would be lost.
    await writeFile(this.#path, `${Buffer.from(key).toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true })
    return { id: OWN_KEY_ID, key }
  }
}
