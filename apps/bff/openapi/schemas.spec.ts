import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { SchemaCollection } from './schemas.ts'

const Inner = z.object({ n: z.int() }).meta({ id: 'Inner' })
const Both = z.object({ inner: Inner, limit: z.int().default(5) }).meta({ id: 'Both' })

describe('schemas of the document', () => {
  it('makes a component of each schema with an id, and refers to it', () => {
    const schemas = new SchemaCollection()
    expect(schemas.add(z.object({ items: z.array(Inner) }), 'output')).toMatchObject({
      properties: { items: { items: { $ref: '#/components/schemas/Inner' } } },
    })
    expect(schemas.components['Inner']).toMatchObject({ type: 'object', required: ['n'] })
  })

  it('keeps what is sent and what is answered apart only where they differ', () => {
    const schemas = new SchemaCollection()
    schemas.noteOutput(Both)
    expect(schemas.add(Both, 'input')).toEqual({ $ref: '#/components/schemas/BothInput' })
    expect(schemas.add(Both, 'output')).toEqual({ $ref: '#/components/schemas/Both' })
    expect(schemas.components['BothInput']).toMatchObject({ required: ['inner'] })
    expect(schemas.components['Both']).toMatchObject({ required: ['inner', 'limit'] })
    expect(schemas.components['InnerInput']).toBeUndefined()
  })

  it('leaves answers open for fields of later versions', () => {
    const schemas = new SchemaCollection()
    schemas.add(Inner, 'output')
    expect(schemas.components['Inner']).not.toHaveProperty('additionalProperties')
  })
})
