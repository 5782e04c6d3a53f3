// `npm start`: everything a fresh clone needs, then the server, in this very process where the machine's Node is new enough.
import { bootstrap } from './bootstrap.mjs'

await bootstrap(['dependencies', 'database-client', 'server', 'web'])
const { runBundle } = await import('./bootstrap/become.mjs')
await runBundle('server.mjs')
