import { accessSync, constants, realpathSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'

/**
 * npm's own entry file: the npm that runs this command, else the one on PATH; undefined where that is a wrapper of another kind.
 * @returns {string | undefined}
 */
export function npmEntry() {
  const running = process.env.npm_execpath
  if (running && basename(running) === 'npm-cli.js') return running
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, 'npm')
    try {
      accessSync(path, constants.X_OK)
    } catch {
      continue // not in this folder
    }
    const real = realpathSync(path)
    return basename(real) === 'npm-cli.js' ? real : undefined
  }
  return undefined
}

/** @returns {{ command: string, args: string[] }} how to run npm with this very Node */
export function npmCommand() {
  const entry = npmEntry()
  return entry ? { command: process.execPath, args: [entry] } : { command: 'npm', args: [] }
}
