/** A program of its own: initialises a data folder, checkpoints, and ends. Usage: node database-creator FOLDER */
import { writeSync } from 'node:fs'
import { openBackend } from './backend.ts'

async function main(): Promise<void> {
  const folder = process.argv[2]
  if (folder === undefined) throw new Error('usage: database-creator FOLDER')
  // The pipe ends when the starting process does: an orphan must not go on writing into its home.
  process.stdin.on('end', () => process.exit(1)).resume()
  const backend = await openBackend({
    folder,
    onFsync: () => {},
    onTrap: (error) => {
      writeSync(process.stderr.fd, String(error))
      return process.exit(1)
    },
  })
  await backend.close()
  process.exit(0)
}

await main()
