// A stamp holds the hash of what a step read when it last succeeded. Stamps live in node_modules, so that they go with it.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { contentHash } from './content-hash.mjs'
import { at } from './paths.mjs'
import { steps } from './steps.mjs'

const stampOf = (name) => at('node_modules/.cache/lingtai', `${name}.stamp`)

/** @param {import('./steps.mjs').StepName} name */
export function isCurrent(name) {
  const step = steps[name]
  if (!step.outputs.every((path) => existsSync(at(path)))) return false
  const stamp = stampOf(name)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === contentHash(step.inputs)) return true
  if (!step.isDoneByHand?.()) return false
  writeStamp(name, contentHash(step.inputs))
  return true
}

/** @param {import('./steps.mjs').StepName} name */
export function dropStamp(name) {
  rmSync(stampOf(name), { force: true })
}

/**
 * @param {import('./steps.mjs').StepName} name
 * @param {string} hash of the inputs as they were before the step ran
 */
export function writeStamp(name, hash) {
  mkdirSync(dirname(stampOf(name)), { recursive: true })
  writeFileSync(stampOf(name), hash)
}
