// Bundles the server with its packages into a few files under dist: it boots in a third of the time and memory that loading a thousand
// files from node_modules takes (docs/decisions/0001).
import { readdirSync, rmSync } from 'node:fs'
import { rolldown } from 'rolldown'
import { at } from './paths.mjs'
import { serverEntries } from './steps.mjs'

/** Packages that find files of their own (WASM, native code, workers, pages) beside their code. */
const keptOutside = ['@electric-sql/pglite', '@electric-sql/pglite-pgvector', 'pino', 'swagger-ui-dist']

/** Packages that NestJS and pg ask for and do without; they are not installed. */
const optional = [
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@fastify/static',
  '@fastify/view',
  'class-validator',
  'class-transformer',
  'pg-native',
]

const left = [...keptOutside, ...optional]

/** @returns {import('rolldown').InputOptions & { output: import('rolldown').OutputOptions }} */
export function serverBundle() {
  return {
    cwd: at(),
    input: serverEntries(),
    platform: 'node',
    tsconfig: at('tsconfig.json'),
    external: (id) => left.some((name) => id === name || id.startsWith(`${name}/`)),
    // NestJS injects by the constructor's parameter types; the decorator metadata that keeps them is switched on in tsconfig.json.
    transform: { target: 'node24' },
    onLog(level, log, report) {
      report(log.code === 'UNRESOLVED_IMPORT' ? 'error' : level, log)
    },
    output: {
      dir: at('dist'),
      format: 'esm',
      sourcemap: true,
      keepNames: true,
      entryFileNames: '[name]',
      // Beside the entries, so that `new URL('./database-worker.js', import.meta.url)` is right in every chunk.
      chunkFileNames: 'shared-[hash].mjs',
    },
  }
}

export async function buildServer() {
  const { output, ...input } = serverBundle()
  const bundle = await rolldown(input)
  const written = await bundle.write(output)
  await bundle.close()
  removeOldChunks(new Set(written.output.map((file) => file.fileName)))
}

function removeOldChunks(written) {
  for (const name of readdirSync(at('dist'))) {
    if (name.startsWith('shared-') && !written.has(name)) rmSync(at('dist', name))
  }
}
