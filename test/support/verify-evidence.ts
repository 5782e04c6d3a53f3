/** What `scripts/verify-evidence.mjs` says of a file, run apart from everything. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../scripts/verify-evidence.mjs', import.meta.url))

export function verifyEvidence(bytes: string | Uint8Array, ...options: string[]): Promise<{ code: number; out: string; faults: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'lingtai-evidence-'))
  const file = join(folder, 'evidence.json')
  writeFileSync(file, bytes)
  return new Promise((resolve) => {
    execFile(process.execPath, [script, file, ...options], { cwd: folder }, (error, out, faults) => {
      rmSync(folder, { recursive: true, force: true })
      resolve({ code: error ? Number(error.code) : 0, out, faults })
    })
  })
}
