// `npm run build`: everything that `npm start` makes before it serves; used by the Dockerfile.
import { bootstrap } from './bootstrap.mjs'

await bootstrap(['dependencies', 'database-client', 'server', 'web'])
