import { z } from 'zod'

/**
 * One thing that the Kernel must do (spec/2): a stable id, what must hold in one sentence, and the tests that fail when it does not: by file,
 * the names or distinctive parts of names of tests or suites.
 */
export type Clause = { id: string; must: string; tests: Readonly<Record<string, readonly string[]>> }

/** One test as Vitest reports it; `file` lies below the repository's folder. */
export type TestResult = { file: string; name: string; status: string }

/**
 * - `passed`: every named test ran and passed; those of the full tier may be missing where that tier was not run;
 * - `other tier`: all its tests are of the tier that was not run;
 * - `no test`: nothing proves it.
 */
export type Standing = 'passed' | 'failed' | 'no test' | 'other tier'

export type Row = { clause: Clause; standing: Standing; tests: { file: string; name: string; outcome: string }[] }

const Report = z.object({
  testResults: z.array(
    z.object({ name: z.string(), message: z.string(), assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })) }),
  ),
})

/** Whether a test needs PostgreSQL and Redis, and runs on no other tier. */
export const needsFullTier = (file: string): boolean => file.endsWith('.full.spec.ts')

/** Whether a file's tests run on both tiers. */
export const runsOnBothTiers = (file: string): boolean => /^test\/(ports|invariants|story)\//.test(file) && !needsFullTier(file)

/** The tests of a Vitest JSON report. A file that could not be loaded is one failed test without a name. */
export function readReport(text: string, root: string): TestResult[] {
  return Report.parse(JSON.parse(text)).testResults.flatMap(({ name, message, assertionResults }) => {
    const file = name.startsWith(root) ? name.slice(root.length).replace(/^\//, '') : name
    if (assertionResults.length === 0) return [{ file, name: '', status: message === '' ? 'empty' : 'failed' }]
    return assertionResults.map(({ fullName, status }) => ({ file, name: fullName, status }))
  })
}

/** Each clause with what became of the tests that prove it. */
export function judge(clauses: readonly Clause[], results: readonly TestResult[]): Row[] {
  const byFile = Map.groupBy(results, ({ file }) => file)
  return clauses.map((clause) => {
    const tests = Object.entries(clause.tests).flatMap(([file, names]) =>
      names.map((name) => ({ file, name, outcome: outcomeOf(byFile.get(file), file, name) })),
    )
    return { clause, tests, standing: standingOf(tests.map(({ outcome }) => outcome)) }
  })
}

function outcomeOf(ran: readonly TestResult[] | undefined, file: string, name: string): string {
  if (!ran) return needsFullTier(file) ? 'other tier' : 'not run'
  const found = ran.filter((result) => result.name.includes(name))
  if (found.length === 0) return 'no such test'
  return found.find(({ status }) => status !== 'passed')?.status ?? 'passed'
}

function standingOf(outcomes: readonly string[]): Standing {
  if (outcomes.length === 0) return 'no test'
  if (outcomes.every((outcome) => outcome === 'other tier')) return 'other tier'
  return outcomes.every((outcome) => outcome === 'passed' || outcome === 'other tier') ? 'passed' : 'failed'
}

/** The matrix as lines for people: clause → tests → what became of them, and the count. */
export function show(rows: readonly Row[]): string[] {
  const lines = rows.flatMap(({ clause, standing, tests }) => [
    `${mark[standing]} ${clause.id}  ${clause.must}`,
    ...(tests.length === 0 ? ['      no test'] : tests.map(({ file, name, outcome }) => `      ${outcome}  ${file} › ${name}`)),
  ])
  const count = (standing: Standing): number => rows.filter((row) => row.standing === standing).length
  const open = rows.filter(({ standing }) => standing === 'failed' || standing === 'no test').map(({ clause }) => clause.id)
  return [
    ...lines,
    '',
    `${rows.length} clauses: ${count('passed')} hold, ${count('failed')} fail, ${count('no test')} without a test, ${count('other tier')} need the full tier.`,
    ...(open.length === 0 ? [] : [`Open: ${open.join(', ')}`]),
  ]
}

const mark: Record<Standing, string> = { passed: 'holds  ', failed: 'FAILS  ', 'no test': 'NO TEST', 'other tier': 'other  ' }
