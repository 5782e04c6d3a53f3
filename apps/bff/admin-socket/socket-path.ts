import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A socket's path ends at 103 bytes on macOS and 107 on Linux. */
const LONGEST_PATH_BYTES = 103

/** Where commands find a running server: `<home>/run/admin.sock`, itself the socket or, where that is too long, a link to it. */
export function adminSocketPath(home: string): string {
  return join(home, 'run', 'admin.sock')
}

/** Makes room for the socket, in folders of mode 0700, and removes what a killed server left: the lock on the home says that none runs. */
export function makeAdminSocketPath(home: string): { path: string; remove: () => void } {
  const named = adminSocketPath(home)
  const folder = dirname(named)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  rmSync(named, { force: true })
  if (Buffer.byteLength(named) <= LONGEST_PATH_BYTES) return { path: named, remove: () => rmSync(named, { force: true }) }
  const short = mkdtempSync(join(Buffer.byteLength(tmpdir()) < 60 ? tmpdir() : '/tmp', 'lingtai-'))
  const path = join(short, 'admin.sock')
  symlinkSync(path, named)
  return {
    path,
    remove: () => {
      rmSync(named, { force: true })
      rmSync(short, { recursive: true, force: true })
    },
  }
}

/** The path to connect to, or null where there is no socket. */
export function findAdminSocket(home: string): string | null {
  const named = adminSocketPath(home)
  const found = lstatSync(named, { throwIfNoEntry: false })
  if (!found) return null
  return found.isSymbolicLink() ? readlinkSync(named) : named
}
