import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { fileLines } from './file-lines.ts'

const folder = mkdtempSync(join(tmpdir(), 'lingtai-lines-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function all(path: string): Promise<string[]> {
  const lines: string[] = []
  for await (const line of fileLines(path)) lines.push(line)
  return lines
}

it('reads lines, none of a file that is not there, and closes what is left in the middle', async () => {
  const path = join(folder, 'lines')
  expect(await all(path)).toEqual([])
  writeFileSync(path, 'a\nb\n\nc')
  expect(await all(path)).toEqual(['a', 'b', '', 'c'])
  for (let time = 0; time < 200; time++) {
    for await (const line of fileLines(path)) if (line === 'a') break
  }
  await expect(all(folder)).rejects.toThrow(/EISDIR/)
})
