import { randomBytes, randomInt } from 'node:crypto'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'

export const systemClock: Clock = { now: () => new Date() }

export const systemScheduler: Scheduler = {
  after(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds)
    return () => clearTimeout(timer)
  },
}

/** UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits; monotonic within this process. */
export class SystemIds implements Ids {
  #last = 0
  #counter = 0

  next(): string {
    const now = Math.max(Date.now(), this.#last)
    this.#counter = now === this.#last ? this.#counter + 1 : randomInt(0, 1024)
    // 12 bits of counter; past them the clock is nudged on, so that order within the process holds.
    if (this.#counter > 0xfff) {
      this.#last = now + 1
      this.#counter = 0
    } else this.#last = now
    const bytes = randomBytes(16)
    bytes.writeUIntBE(this.#last, 0, 6)
    bytes.writeUInt16BE(0x7000 | this.#counter, 6)
    bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
    const hex = bytes.toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }

  bytes(length: number): Uint8Array {
    return randomBytes(length)
  }

  seed(): number {
    return randomInt(0, 2 ** 31)
  }
}
