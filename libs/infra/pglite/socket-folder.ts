/** Where the database's socket lies. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** pg, libpq and psql look for `<folder>/.s.PGSQL.<port>`. */
export const SOCKET_PORT = 5432
const SOCKET_NAME = `.s.PGSQL.${SOCKET_PORT}`

/** A socket's path ends at 103 bytes on macOS and 107 on Linux. */
const LONGEST_PATH_BYTES = 103

export interface SocketFolder {
  readonly folder: string
  readonly socketPath: string
  /** Removes a socket that its server has left behind. */
  removeSocket(): void
  /** Removes the socket, and the folder if it was made for it alone. */
  remove(): void
}

/** `<home>/run`, or where that is too long for a socket a folder under the system's temporary one; mode 0700 either way. */
export function makeSocketFolder(home: string): SocketFolder {
  const run = join(home, 'run')
  if (fits(run)) {
    mkdirSync(run, { recursive: true, mode: 0o700 })
    // The folder may have been there with a wider mode.
    chmodSync(run, 0o700)
    const socketPath = join(run, SOCKET_NAME)
    const removeSocket = (): void => rmSync(socketPath, { force: true })
    removeSocket() // Left by a process that was killed; the lock on the home says that none is running.
    return { folder: run, socketPath, removeSocket, remove: removeSocket }
  }
  const parent = [tmpdir(), '/tmp'].find((candidate) => fits(join(candidate, 'lingtai-XXXXXX'))) ?? '/tmp'
  const folder = mkdtempSync(join(parent, 'lingtai-'))
  const socketPath = join(folder, SOCKET_NAME)
  return {
    folder,
    socketPath,
    removeSocket: () => rmSync(socketPath, { force: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, SOCKET_NAME)) <= LONGEST_PATH_BYTES
}
