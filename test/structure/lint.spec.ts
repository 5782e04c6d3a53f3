import { execFile } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makeFixture, repository } from './fixture.ts'

const colour = `type Colour = 'red' | 'green'\nexport const name = (colour: Colour) => {\n  switch (colour) {\n    case 'red':\n      return 1\n  }\n  return 0\n}\n`

/** Code that each rule refuses: the file that it stands in, and the code. */
const breaches: Record<string, [path: string, code: string]> = {
  'typescript(no-floating-promises)': ['libs/infra/floating.ts', `const later = async () => 1\nexport const run = () => {\n  later()\n}\n`],
  'typescript(no-misused-promises)': [
    'libs/infra/misused.ts',
    `export const run = (list: number[]) => list.forEach(async (item) => Promise.resolve(item))\n`,
  ],
  'typescript(await-thenable)': ['libs/infra/thenable.ts', `export const run = async () => {\n  await 1\n}\n`],
  'typescript(switch-exhaustiveness-check)': ['libs/infra/switch.ts', colour],
  'typescript(no-explicit-any)': ['libs/infra/any.ts', `export const value: any = 1\n`],
  'typescript(no-non-null-assertion)': ['libs/infra/not-null.ts', `export const first = (list: number[]) => list[0]!\n`],
  'typescript(ban-ts-comment)': [
    'libs/infra/comment.ts',
    `// @ts-expect-error because I say so, at length\nexport const value: number = 'text'\n`,
  ],
  'typescript(consistent-type-imports)': [
    'libs/infra/type-import.ts',
    `import { Kind } from './any.js'\nexport const value: Kind | undefined = undefined\n`,
  ],
  'eslint(eqeqeq)': ['libs/infra/equal.ts', `export const same = (a: unknown, b: unknown) => a == b\n`],
  'eslint(no-console)': ['libs/infra/console.ts', `console.log('here')\n`],
  'eslint(no-empty)': ['libs/infra/empty.ts', `export const run = (work: () => void) => {\n  try {\n    work()\n  } catch {}\n}\n`],
  'eslint(no-warning-comments)': ['libs/infra/later.ts', `// TODO: later\nexport {}\n`],
  'import(no-cycle)': ['libs/infra/cycle-a.ts', `import { b } from './cycle-b.ts'\nexport const a = () => b\n`],
  'node(no-process-env)': ['libs/infra/environment.ts', `export const port = process.env.PORT\n`],
  'eslint(no-restricted-globals)': ['libs/kernel/network.ts', `export const run = () => fetch('http://127.0.0.1')\n`],
  'eslint(no-restricted-properties)': ['libs/domains/memory/clock.ts', `export const now = () => Date.now()\n`],
}

const allowed: Record<string, string> = {
  'libs/infra/cycle-b.ts': `import { a } from './cycle-a.ts'\nexport const b = () => a\n`,
  'libs/infra/config/environment.ts': `export const port = process.env.PORT\n`,
  'libs/kernel/pure.ts': `export const add = (a: number, b: number) => a + b\n`,
  'libs/infra/clock.ts': `export const now = () => Date.now()\n`,
}

const Report = z.object({ diagnostics: z.array(z.object({ code: z.string(), filename: z.string(), severity: z.string() })) })

describe('lint rules', () => {
  let fixture: ReturnType<typeof makeFixture>
  let found: z.infer<typeof Report>['diagnostics']

  beforeAll(async () => {
    fixture = makeFixture({ ...Object.fromEntries(Object.values(breaches)), ...allowed }, {})
    symlinkSync(join(repository, 'node_modules'), join(fixture.folder, 'node_modules'))
    const output = await new Promise<string>((resolve) => {
      // Its exit code is 1 where it finds something, which it must.
      execFile(
        process.execPath,
        [join(repository, 'node_modules/oxlint/bin/oxlint'), '--type-aware', '--format=json', 'libs'],
        { cwd: fixture.folder },
        (_error, stdout) => resolve(stdout),
      )
    })
    found = Report.parse(JSON.parse(output)).diagnostics
  })
  afterAll(() => fixture.remove())

  it.each(Object.entries(breaches))('%s is an error', (rule, [path]) => {
    expect(found.filter((diagnostic) => diagnostic.filename === path)).toContainEqual(
      expect.objectContaining({ code: rule, severity: 'error' }),
    )
  })

  it.each(Object.keys(allowed).filter((path) => !path.includes('cycle')))('%s is clean', (path) => {
    expect(found.filter((diagnostic) => diagnostic.filename === path)).toEqual([])
  })
})

describe('sources', () => {
  const roots = ['apps', 'libs', 'test', 'scripts', '.ci'].filter((root) => existsSync(join(repository, root)))

  async function sources() {
    const files: { path: string; text: string }[] = []
    for (const root of roots) {
      const entries = await readdir(join(repository, root), { recursive: true, withFileTypes: true })
      for (const entry of entries) {
        const path = join(entry.parentPath, entry.name)
        if (entry.isFile() && /\.(ts|tsx|mjs)$/.test(entry.name) && !path.includes('node_modules'))
          files.push({ path: path.slice(repository.length + 1), text: await readFile(path, 'utf8') })
      }
    }
    return files
  }

  it('none switches a rule off', async () => {
    const switches = new RegExp(['oxlint', 'eslint'].map((tool) => `${tool}-(disable|enable)`).join('|'))
    const files = await sources()
    expect(files.length).toBeGreaterThan(20)
    expect(files.filter(({ text }) => switches.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('nothing inside asks what time it is by making a date', async () => {
    const inside = (await sources()).filter(
      ({ path }) => /^libs\/(contracts|kernel|runtime|domains|pivots)\//.test(path) && !path.endsWith('.spec.ts'),
    )
    expect(inside.filter(({ text }) => /new Date\(\s*\)/.test(text)).map(({ path }) => path)).toEqual([])
  })
})
