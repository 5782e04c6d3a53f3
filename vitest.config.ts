import { defineConfig } from 'vitest/config'

/** Tests of the full tier say so in their name, or stand where the same suite runs on both tiers. */
const full = ['libs/**/*.full.spec.ts', 'apps/**/*.full.spec.ts', 'test/**/*.full.spec.ts']

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    // V8 sometimes aborts while it frees single pieces of WebAssembly code, where databases come and go in one process (nodejs/node 64500).
    execArgv: ['--no-wasm-code-gc'],
    testTimeout: 30_000,
    // The first hook that wants a database makes the snapshot that all others copy, on a machine that may be busy.
    hookTimeout: 180_000,
    projects: [
      // Modules are loaded once for all files of a worker: these tests keep nothing in them.
      { extends: true, test: { name: 'unit', isolate: false, include: ['libs/**/*.spec.ts', 'apps/**/*.spec.ts'], exclude: full } },
      {
        extends: true,
        test: {
          name: 'light',
          // As above: each file has a system and a folder of its own, and half the time went into importing the same server again.
          isolate: false,
          globalSetup: 'test/support/database-global-setup.ts',
          include: ['test/{light,ports,invariants,story,structure}/**/*.spec.ts'],
          exclude: full,
        },
      },
      { extends: true, test: { name: 'full', include: [...full, 'test/{ports,invariants,story}/**/*.spec.ts'] } },
      { extends: true, test: { name: 'faults', include: ['test/faults/**/*.spec.ts'] } },
      { extends: true, test: { name: 'e2e', include: ['test/e2e/**/*.spec.ts'] } },
    ],
  },
})
