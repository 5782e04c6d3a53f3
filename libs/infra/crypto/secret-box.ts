import { createCipheriv, createDecipheriv } from 'node:crypto'
import { LingtaiError } from '#contracts'
import type { SealedHeaders, SecretBox } from '#domains/tools/ports'
import type { SecretKey } from '#infra/config/secret-keys'
import type { Ids } from '#kernel/ports/clock'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The keys that there are, the first of which encrypts; asked each time, since the light tier makes its own when it first needs one. */
export interface KeyRing {
  forSealing(): Promise<SecretKey | null>
  find(id: string): Promise<SecretKey | null>
}

/** AES-256-GCM with a fresh nonce each time; the context is authenticated with it (decision 38). Stored as nonce, tag, text. */
export class AesSecretBox implements SecretBox {
  readonly #keys: KeyRing
  readonly #ids: Pick<Ids, 'bytes'>

  constructor({ keys, ids }: { keys: KeyRing; ids: Pick<Ids, 'bytes'> }) {
    this.#keys = keys
    this.#ids = ids
  }

  async seal(text: string, context: string): Promise<SealedHeaders> {
    const key = await this.#keys.forSealing()
    if (!key) {
      throw new LingtaiError('wrong_state', 'Nothing secret can be kept here: the operator has to set LINGTAI_SECRET_KEYS first.')
    }
    const nonce = this.#ids.bytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, key.key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return { key_id: key.id, sealed: Buffer.concat([nonce, cipher.getAuthTag(), sealed]) }
  }

  async open({ key_id: keyId, sealed }: SealedHeaders, context: string): Promise<string | null> {
    const key = await this.#keys.find(keyId)
    if (!key || sealed.byteLength < NONCE_BYTES + TAG_BYTES) return null
    const bytes = Buffer.from(sealed)
    const decipher = createDecipheriv(ALGORITHM, key.key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8')
    } catch {
      return null // another key under the same name, another row's secret, or damaged bytes: nothing that can be read
    }
  }
}
