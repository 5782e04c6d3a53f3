// The built server as a child that ends with the process that started it.
import { runBundle } from './become.mjs'
import { stopWithParent } from './processes.mjs'

stopWithParent()
await runBundle('server.mjs')
