// What every command of this repository does first: find the right Node, then bring the set-up that the command needs up to date.
// Plain JavaScript that runs on Node 18 too, since it is what finds Node 24. All that it says goes to stderr: stdout is the command's.
import { explain, SetUpError } from './bootstrap/report.mjs'
import { continueOnNode24 } from './bootstrap/node-24.mjs'
import { stopWithParent } from './bootstrap/processes.mjs'
import { bringUpToDate } from './bootstrap/up-to-date.mjs'

/**
 * Returns once this process is Node 24 or newer and every named step is done; where the machine's Node is older, it never returns:
 * the same command goes on in a child with Node 24 and this process ends with the child's exit code.
 * @param {import('./bootstrap/steps.mjs').StepName[]} steps what the command needs, in order
 */
export async function bootstrap(steps) {
  try {
    await continueOnNode24()
    stopWithParent()
    await bringUpToDate(steps)
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error
    explain(error)
    process.exit(1)
  }
}
