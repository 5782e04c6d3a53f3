import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { portVersions } from './versions.ts'

it('names every port, each with a version', () => {
  const ports = readdirSync(import.meta.dirname)
    .filter((file) => !file.endsWith('.spec.ts') && file !== 'versions.ts')
    .map((file) => file.replace(/\.ts$/, ''))
  expect(Object.keys(portVersions).sort()).toEqual(ports.sort())
  for (const version of Object.values(portVersions)) expect(version).toBeGreaterThan(0)
})
