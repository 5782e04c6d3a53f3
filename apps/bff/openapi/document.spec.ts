import 'reflect-metadata'
import { describe, expect, it } from 'vitest'
import { controllersOf } from '../app.module.ts'
import { routesOf } from '../http/api-route.ts'
import { openApiDocument } from './document.ts'

const routes = routesOf(controllersOf({ api: true }))
const document = openApiDocument({ routes, version: '0.0.0' })
const operations = Object.values(document.paths).flatMap((path) => Object.values(path))

describe('the API document', () => {
  it('has every route once, under a name of its own', () => {
    const names = routes.map((route) => `${route.method} ${route.path}`)
    expect(new Set(names).size).toBe(names.length)
    expect(operations).toHaveLength(routes.length)
    expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(routes.length)
  })

  it('refers only to what it holds', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)]
    expect(references.length).toBeGreaterThan(50)
    for (const [, kind, name = ''] of references) {
      const holder: Record<string, unknown> = kind === 'schemas' ? document.components.schemas : document.components.responses
      expect(holder, `${kind}/${name}`).toHaveProperty([name])
    }
    expect(JSON.stringify(document)).not.toContain('#/$defs/')
  })

  it('names every parameter of a path, and the key of every mutation that keeps one', () => {
    for (const route of routes) {
      const operation = document.paths[route.path]?.[route.method.toLowerCase()]
      const named = operation?.parameters.filter(({ in: where }) => where === 'path').map(({ name }) => name)
      expect(named, route.path).toEqual([...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]))
      const hasKey = operation?.parameters.some(({ name }) => name === 'Idempotency-Key')
      expect(hasKey, `${route.method} ${route.path}`).toBe(route.idempotent)
    }
  })

  it('says of every answer what it is', () => {
    for (const operation of operations) {
      const successes = Object.keys(operation.responses).filter((status) => status.startsWith('2'))
      expect(successes, operation.operationId).toHaveLength(1)
      expect(operation.responses, operation.operationId).toHaveProperty('default')
    }
  })

  it('asks for credentials everywhere but where there can be none', () => {
    const open = routes.filter((route) => route.access === 'public').map((route) => `${route.method} ${route.path}`)
    expect(open.toSorted()).toEqual([
      'GET /docs',
      'GET /docs/assets/{file}',
      'GET /docs/openapi.json',
      'GET /health/live',
      'GET /health/ready',
      'GET /metrics',
      'POST /v1/session',
    ])
  })

  // A task's action brings a key of its own, and its cancellation and completion are settled once by the task's state.
  it('has every mutation of the API take a key, but those that write nothing by it', () => {
    const without = routes.filter((route) => route.isMutation && !route.idempotent).map((route) => `${route.method} ${route.path}`)
    expect(without.toSorted()).toMatchInlineSnapshot(`
      [
        "DELETE /v1/session",
        "PATCH /v1/nodes/{id}",
        "POST /v1/admin/approvals/{id}/refusal",
        "POST /v1/admin/runs/{id}/replay",
        "POST /v1/admin/verify",
        "POST /v1/memories/search",
        "POST /v1/runs/{id}/cancel",
        "POST /v1/session",
        "POST /v1/tasks/{id}/actions",
        "POST /v1/tasks/{id}/cancel",
        "POST /v1/tasks/{id}/complete",
        "POST /v1/tool-sources/{id}/refresh",
      ]
    `)
  })
})
