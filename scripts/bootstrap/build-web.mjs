// Builds the web page beside the one being served and swaps the folders, so that a killed build leaves the old page whole.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { build } from 'vite'
import { at } from './paths.mjs'

export async function buildWeb() {
  process.env.NODE_ENV = 'production'
  const [page, next, old] = [at('dist/web'), at('dist/web.next'), at('dist/web.old')]
  await build({ root: at('apps/web'), build: { outDir: next, emptyOutDir: true }, logLevel: 'warn' })
  rmSync(old, { recursive: true, force: true })
  if (existsSync(page)) renameSync(page, old)
  renameSync(next, page)
  rmSync(old, { recursive: true, force: true })
}
