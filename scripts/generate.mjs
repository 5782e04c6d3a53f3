// `npm run generate`: the database client from prisma/schema.prisma, whether or not it looks current.
import { bootstrap } from './bootstrap.mjs'

await bootstrap(['dependencies'])
const { dropStamp } = await import('./bootstrap/stamps.mjs')
dropStamp('database-client')
await bootstrap(['database-client'])
