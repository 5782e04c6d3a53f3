import { describe, expect, it } from 'vitest'
import { parseRoute, paths } from './routes.ts'

describe('parseRoute', () => {
  it('reads back every path that the page makes', () => {
    expect(parseRoute(paths.home)).toEqual({ name: 'home' })
    expect(parseRoute(paths.character('a'))).toEqual({ name: 'character', id: 'a' })
    expect(parseRoute(paths.tree('t'))).toEqual({ name: 'tree', id: 't', node: null })
    expect(parseRoute(paths.node('t', 'n'))).toEqual({ name: 'tree', id: 't', node: 'n' })
    expect(parseRoute(paths.memory)).toEqual({ name: 'memory' })
    expect(parseRoute(paths.admin)).toEqual({ name: 'admin' })
    expect(parseRoute(paths.settings)).toEqual({ name: 'settings' })
  })

  it('knows nothing else', () => {
    for (const path of ['/x', '/t', '/t/a/b', '/t/a/n/b/c', '/c/a/b', '/memory/x', '/admin/x/y'])
      expect(parseRoute(path)).toEqual({ name: 'unknown' })
  })
})
