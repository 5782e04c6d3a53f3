// `npm run dev`: the server and the page as `npm start` serves them, rebuilt at every change; the server restarts, the page is reloaded
// by hand.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { bootstrap } from './bootstrap.mjs'
import { at } from './bootstrap/paths.mjs'
import { say } from './bootstrap/report.mjs'

await bootstrap(['dependencies', 'database-client', 'server', 'web'])
const { watch } = await import('rolldown')
const { build } = await import('vite')
const { serverBundle } = await import('./bootstrap/build-server.mjs')

let server
const restart = async () => {
  if (server && server.exitCode === null && server.signalCode === null) {
    server.kill('SIGTERM')
    await once(server, 'exit')
  }
  server = spawn(process.execPath, [at('scripts/bootstrap/serve.mjs')], {
    stdio: 'inherit',
    env: { ...process.env, LINGTAI_PARENT: String(process.pid) },
  })
}

const page = await build({ root: at('apps/web'), build: { outDir: at('dist/web'), emptyOutDir: false, watch: {} }, logLevel: 'warn' })
const bundle = watch(serverBundle())
bundle.on('event', async (event) => {
  if (event.code === 'ERROR') say(event.error.message)
  if (event.code === 'BUNDLE_END') await event.result.close()
  if (event.code === 'END') await restart()
})

const stop = async (signal) => {
  await Promise.all([bundle.close(), page.close()])
  if (server && server.exitCode === null && server.signalCode === null) {
    server.kill(signal)
    await once(server, 'exit')
  }
  process.exit(0)
}
process.on('SIGINT', stop)
process.on('SIGTERM', stop)
