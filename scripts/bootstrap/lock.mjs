import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'

const busy = 5 // SQLITE_BUSY

/**
 * Takes a lock that the operating system frees when this process ends in whatever way: an exclusive SQLite transaction, never closed.
 * @param {string} path
 * @param {() => void} onWait called once when another process holds it
 * @returns {Promise<DatabaseSync>} the handle; keep it reachable for as long as the lock should hold
 */
export async function takeLock(path, onWait) {
  mkdirSync(dirname(path), { recursive: true })
  const handle = new DatabaseSync(path, { timeout: 0 })
  for (let waited = false; ; await wait(200)) {
    try {
      handle.exec('BEGIN EXCLUSIVE')
      return handle
    } catch (error) {
      if (error.errcode !== busy) throw error
      if (!waited) onWait()
      waited = true
    }
  }
}
