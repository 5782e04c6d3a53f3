import { open } from 'node:fs/promises'

/** The lines of a file; none where there is no file. */
export async function* fileLines(path: string): AsyncGenerator<string> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  })
  if (!file) return
  try {
    yield* file.readLines()
  } finally {
    await file.close()
  }
}
