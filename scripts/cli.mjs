// `npm run -s token|signin|verify|replay|db:migrate`: one verb of the command-line program. Its stdout is the answer alone.
import { bootstrap } from './bootstrap.mjs'

await bootstrap(['dependencies', 'database-client', 'server'])
const { runBundle } = await import('./bootstrap/become.mjs')
await runBundle('cli.mjs')
