import { at } from './paths.mjs'
import { run } from './processes.mjs'
import { SetUpError } from './report.mjs'
import { isCurrent } from './stamps.mjs'
import { steps } from './steps.mjs'

/**
 * Runs those of the named steps that are not current, each in a process of its own: what a bundler leaves in memory does not stay in
 * the server, and the step's lock is held by the very process that does the work.
 * @param {import('./steps.mjs').StepName[]} names in the order in which they depend on each other
 */
export async function bringUpToDate(names) {
  for (const name of names) {
    const step = steps[name]
    if (isCurrent(name)) continue
    const { code, output } = await run({
      command: process.execPath,
      args: [at('scripts/bootstrap/run-step.mjs'), name],
      env: { ...process.env, LINGTAI_PARENT: String(process.pid) },
      capture: true,
    })
    if (code !== 0) throw new SetUpError({ what: `the step "${name}" ended with exit code ${code}.`, todo: step.todo, output })
  }
}
