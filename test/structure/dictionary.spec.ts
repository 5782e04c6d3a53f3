import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { eventDictionary, EventTypeName } from '#contracts'

const root = fileURLToPath(new URL('../../', import.meta.url))

function sources(folder: string): { path: string; text: string }[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.spec\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.includes('/libs/contracts/') && !path.includes('/apps/web/'))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
}

const code = [...sources('libs'), ...sources('apps')]
/** An event is written as an object with its type and payload. */
const written = new Set(
  code.flatMap(({ text }) =>
    [...text.matchAll(/type: '([a-z_]+(?:\.[a-z_]+)*)'(?: as const)?,\s*payload/g)].map((match) => match[1] ?? ''),
  ),
)

/** Whether any code names the type; tests and the dictionary do not count. */
const isNamed = (type: string): boolean => code.some(({ text }) => text.includes(`'${type}'`))

/** Paths of a schema whose value may be any string: free text has no place in an event (decision 10). */
function freeStrings(schema: z.ZodType, path: string): string[] {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const found: string[] = []
  const walk = (node: unknown, at: string): void => {
    if (typeof node !== 'object' || node === null) return
    if ('type' in node && node.type === 'string') {
      const bounded = ['enum', 'const', 'pattern', 'format'].some((key) => key in node)
      if (!bounded) found.push(at)
    }
    for (const [key, value] of Object.entries(node)) walk(value, `${at}.${key}`)
  }
  walk(json, path)
  return found
}

describe('the dictionary of events', () => {
  it('knows every event that is written anywhere', () => {
    expect(written.size).toBeGreaterThan(20)
    expect([...written].filter((type) => !EventTypeName.safeParse(type).success)).toEqual([])
  })

  it('has no entry that nothing writes, unless it is marked as reserved', () => {
    const unused = EventTypeName.options.filter((type) => !isNamed(type) && eventDictionary[type].reserved !== true)
    const reservedYetWritten = EventTypeName.options.filter((type) => written.has(type) && eventDictionary[type].reserved === true)
    expect({ unused, reservedYetWritten }).toEqual({ unused: [], reservedYetWritten: [] })
  })

  it.each(EventTypeName.options)('%s holds ids, enums, numbers and digests, no free text', (type) => {
    expect(freeStrings(eventDictionary[type].payload, type)).toEqual([])
  })

  it('would notice a free string', () => {
    expect(freeStrings(z.object({ note: z.string(), list: z.array(z.object({ text: z.string() })) }), 'x')).toHaveLength(2)
  })
})
