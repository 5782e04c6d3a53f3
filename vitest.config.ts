import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'unit', include: ['libs/**/*.spec.ts', 'apps/**/*.spec.ts'], exclude: ['apps/web/**'] } },
      { extends: true, test: { name: 'light', include: ['test/light/**/*.spec.ts', 'test/ports/**/*.spec.ts', 'test/invariants/**/*.spec.ts', 'test/story/**/*.spec.ts'] } },
    ],
  },
})
