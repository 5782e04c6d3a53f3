import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { at, root } from './paths.mjs'

const skippedFolders = new Set(['node_modules', 'dist', 'generated', 'coverage'])
const isTest = (name) => /\.(spec|test)\.[cm]?tsx?$/.test(name)

/**
 * SHA-256 (hex) over the paths and bytes of the named files and folders (below the repository's folder), in a fixed order; tests and
 * generated files do not count, a missing file counts as missing.
 * @param {string[]} inputs
 */
export function contentHash(inputs) {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}\n`)
  for (const input of inputs) {
    const path = at(input)
    if (!existsSync(path)) hash.update(`missing ${input}\n`)
    else if (statSync(path).isFile()) addFile(hash, path)
    else addFolder(hash, path)
  }
  return hash.digest('hex')
}

function addFile(hash, path) {
  const bytes = readFileSync(path)
  hash.update(`${relative(root, path)} ${bytes.length}\n`).update(bytes)
}

function addFolder(hash, folder) {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (!skippedFolders.has(entry.name)) addFolder(hash, path)
    } else if (entry.isFile() && !isTest(entry.name)) addFile(hash, path)
  }
}
