import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** The repository's own folder. */
export const repository = join(import.meta.dirname, '..', '..')

/**
 * A small repository with this one's rules, in a temporary folder outside it: files by path, packages as empty stand-ins, the
 * development ones declared as such. Remove it in `afterAll`.
 */
export function makeFixture(
  files: Record<string, string>,
  { packages = [], developmentPackages = [] }: { packages?: string[]; developmentPackages?: string[] },
) {
  const folder = mkdtempSync(join(tmpdir(), 'lingtai-rules-'))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const versions = (names: string[]) => Object.fromEntries(names.map((name) => [name, '1.0.0']))
  write(
    'package.json',
    JSON.stringify({ type: 'module', dependencies: versions(packages), devDependencies: versions(developmentPackages) }),
  )
  for (const name of [...packages, ...developmentPackages]) {
    write(`node_modules/${name}/package.json`, JSON.stringify({ name, version: '1.0.0', type: 'module', exports: './index.js' }))
    write(`node_modules/${name}/index.js`, 'export default 1\n')
  }
  for (const file of ['tsconfig.json', '.oxlintrc.json', '.dependency-cruiser.mjs']) cpSync(join(repository, file), join(folder, file))
  for (const [path, text] of Object.entries(files)) write(path, text)
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
