import 'reflect-metadata'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ApiRoute, Input, routesOf } from './api-route.ts'
import { noContent } from './route-shapes.ts'

const Thing = z.object({ id: z.string() })

class ThingsController {
  @ApiRoute({ method: 'GET', path: '/v1/things/{id}', summary: 'A thing', access: 'read', answer: Thing })
  async read(@Input() { params }: { params: { id: string } }): Promise<{ id: string }> {
    return { id: params.id }
  }

  @ApiRoute({ method: 'DELETE', path: '/v1/things/{id}', summary: 'Gone', access: 'write', answer: noContent })
  async remove(): Promise<void> {
    // nothing to remove in this test
  }
}

describe('declaring a route', () => {
  it('finds every declared route of a controller, with what follows from it', () => {
    expect(
      routesOf([ThingsController]).map(({ method, path, status, isMutation, idempotent }) => ({
        method,
        path,
        status,
        isMutation,
        idempotent,
      })),
    ).toEqual([
      { method: 'GET', path: '/v1/things/{id}', status: 200, isMutation: false, idempotent: false },
      { method: 'DELETE', path: '/v1/things/{id}', status: 204, isMutation: true, idempotent: true },
    ])
  })

  it('refuses a mutation whose answer nobody could build again', () => {
    const declare = () => ApiRoute({ method: 'POST', path: '/v1/things', summary: 'Make', access: 'write', answer: Thing })
    expect(declare).toThrow(/POST \/v1\/things .* rebuild/)
  })
})
