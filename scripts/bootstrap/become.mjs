// Going on as another program in this same process: one process fewer, and signals and exit codes need no passing on.
import { enableCompileCache, setSourceMapsSupport } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { at, root } from './paths.mjs'

/**
 * Goes on as one of the built programs. Stack traces name the sources, and V8's compiled code is kept between starts.
 * @param {'server.mjs' | 'cli.mjs'} name
 */
export async function runBundle(name) {
  setSourceMapsSupport(true)
  enableCompileCache(at('node_modules/.cache/lingtai/compiled'))
  await import(pathToFileURL(at('dist', name)).href)
}

/**
 * Goes on as a command-line program; it may end the process itself.
 * @param {string} entry its file below the repository's folder, or an absolute path
 * @param {string[]} args
 */
export async function become(entry, args) {
  const path = resolve(root, entry)
  process.argv = [process.execPath, path, ...args]
  await import(pathToFileURL(path).href)
}
