// Sums a run of .ci/run: reads its results file and the suites' JSON reports, prints a table and, last, `N passed, N failed`.
// A suite whose report is missing, that ran no test, or that ended badly with no failed test to show counts one failed; so does a test
// file that fell over before its tests. Exits 1 if anything failed.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2]
const results = readFileSync(join(folder, 'results'), 'utf8').trim().split('\n')
const rows = results.map((line) => {
  const [kind, name, outcome] = line.split(' ')
  return { name, ...(kind === 'check' ? ofCheck(outcome) : ofSuite(name, Number(outcome))) }
})

for (const { name, passed, failed, skipped, note } of rows) {
  console.log(`${name.padEnd(16)} ${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}${note ? ` (${note})` : ''}`)
}
const sum = (key) => rows.reduce((total, row) => total + (row[key] ?? 0), 0)
console.log(`${sum('passed')} passed, ${sum('failed')} failed`)
process.exit(sum('failed') > 0 ? 1 : 0)

function ofCheck(outcome) {
  // A check is no test: it can only take away.
  return outcome === 'passed' ? { passed: 0, failed: 0, note: 'clean' } : { passed: 0, failed: 1, note: 'see above' }
}

function ofSuite(name, exitCode) {
  const path = join(folder, `${name}.json`)
  if (!existsSync(path)) return { passed: 0, failed: 1, note: 'no report: the suite did not run to its end' }
  const report = JSON.parse(readFileSync(path, 'utf8'))
  const fallen = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const passed = report.numPassedTests
  const failed = report.numFailedTests + fallen
  const skipped = report.numPendingTests + (report.numTodoTests ?? 0)
  if (passed + failed === 0) return { passed, failed: 1, skipped, note: 'ran no test' }
  if (failed === 0 && exitCode !== 0) return { passed, failed: 1, skipped, note: `exit code ${exitCode}: an error outside the tests` }
  return { passed, failed, skipped }
}
