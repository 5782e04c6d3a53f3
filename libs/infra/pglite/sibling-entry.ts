/** The URL of a file that is started as a thread or process of its own: a TypeScript source among sources, its bundle among bundles. */
export function siblingEntry(name: string, importerUrl: string): URL {
  return new URL(importerUrl.endsWith('.ts') ? `./${name}.ts` : `./${name}.js`, importerUrl)
}
