export type Route =
  | { name: 'home' }
  | { name: 'character'; id: string }
  | { name: 'tree'; id: string; node: string | null }
  | { name: 'memory' }
  | { name: 'admin' }
  | { name: 'settings' }
  | { name: 'unknown' }

export function parseRoute(pathname: string): Route {
  const [head, id, middle, node, ...more] = pathname.split('/').filter((part) => part !== '')
  if (more.length > 0) return { name: 'unknown' }
  if (head === undefined) return { name: 'home' }
  if (head === 'c' && id !== undefined && middle === undefined) return { name: 'character', id }
  if (head === 't' && id !== undefined) {
    if (middle === undefined) return { name: 'tree', id, node: null }
    if (middle === 'n' && node !== undefined) return { name: 'tree', id, node }
  }
  if (id === undefined && (head === 'memory' || head === 'admin' || head === 'settings')) return { name: head }
  return { name: 'unknown' }
}

export const paths = {
  home: '/',
  character: (id: string) => `/c/${id}`,
  tree: (id: string) => `/t/${id}`,
  node: (tree: string, node: string) => `/t/${tree}/n/${node}`,
  memory: '/memory',
  admin: '/admin',
  settings: '/settings',
}
