import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { SentFile } from '../http/route-shapes.ts'

/** Scripts and pictures from here alone; Swagger UI sets styles of its own. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Lingtai API</title>
    <link rel="icon" href="/docs/assets/favicon.png" />
    <link rel="stylesheet" href="/docs/assets/swagger-ui.css" />
  </head>
  <body>
    <div id="api"><noscript>The document itself: <a href="/docs/openapi.json">/docs/openapi.json</a></noscript></div>
    <script src="/docs/assets/swagger-ui-bundle.js"></script>
    <script src="/docs/assets/start.js"></script>
  </body>
</html>
`

const start = `SwaggerUIBundle({
  url: '/docs/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  validatorUrl: null,
  tagsSorter: 'alpha',
  requestInterceptor: (request) => {
    if (request.method !== undefined && request.method !== 'GET') request.headers['Idempotency-Key'] ??= String(performance.timeOrigin + performance.now())
    return request
  },
})
`

export const docsPage: SentFile = { bytes: Buffer.from(html), type: 'text/html; charset=utf-8', policy: pagePolicy }

/** Files that the page names, by the name it names them with. */
const packaged: Readonly<Record<string, { file: string; type: string }>> = {
  'swagger-ui.css': { file: 'swagger-ui.css', type: 'text/css; charset=utf-8' },
  'swagger-ui-bundle.js': { file: 'swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
  'favicon.png': { file: 'favicon-32x32.png', type: 'image/png' },
}

/** A file of the page, or null for any other name. */
export async function readDocsAsset(name: string): Promise<SentFile | null> {
  if (name === 'start.js') return { bytes: Buffer.from(start), type: 'text/javascript; charset=utf-8' }
  const asset = Object.hasOwn(packaged, name) ? packaged[name] : undefined
  if (!asset) return null
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  return { bytes: await readFile(join(folder, asset.file)), type: asset.type }
}
