import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { repository } from './fixture.ts'

/** Every file of the server that can reach network or process, and what for. One more is a decision, to be written down here (K3). */
const exits: Record<string, string> = {
  // Effects go out here.
  'libs/infra/executors/http/address-guard.ts': 'tools over HTTP: looks names up',
  'libs/infra/executors/http/guarded-request.ts': 'tools over HTTP: the one request, to the address that was judged',
  'libs/infra/executors/http/ip-address.ts': 'tools over HTTP: reads addresses, connects to none',
  'libs/infra/executors/mcp/mcp-session.ts': 'tool servers',
  'libs/infra/executors/mcp/mcp-target.ts': 'tool servers: reads what went wrong',
  'libs/infra/executors/sandbox/sandbox.ts': 'the sandbox, a thread',
  'libs/infra/executors/sandbox/sandbox-worker.ts': 'the sandbox, inside that thread',
  'libs/model/http-transport.ts': 'model and embedding requests',
  'libs/model/openai-gateway.ts': 'model requests',
  'libs/model/openai-embedder.ts': 'embedding requests',
  // The demo model is a server of its own on the loopback.
  'libs/model/demo/demo-model.ts': 'the demo model listens',
  // The instance's own stores.
  'libs/infra/pglite/data-folder.ts': 'makes the data folder',
  'libs/infra/pglite/database-front.ts': 'the database of the light tier listens',
  'libs/infra/pglite/database-worker.ts': 'its thread',
  'libs/infra/pglite/worker-thread.ts': 'its thread',
  'libs/infra/prisma/database.ts': 'PostgreSQL',
  'libs/infra/prisma/row-types.ts': 'reads values of PostgreSQL, connects to nothing',
  'libs/infra/prisma/turn-socket.ts': 'PostgreSQL',
  'libs/infra/redis/bullmq-job-queue.ts': 'Redis',
  'libs/infra/redis/connect-redis.ts': 'Redis',
  // The server's own door, and the command line's.
  'apps/bff/admin-socket/call.ts': 'the command line calls',
  'apps/bff/admin-socket/serve.ts': 'the command line is answered',
  'apps/bff/composition/open-database.ts': 'opens the database',
  'apps/bff/http/host-check.ts': 'reads addresses, connects to none',
  'apps/bff/http/problem.ts': 'names of status codes',
  'apps/bff/http/server.ts': 'the API listens',
  'libs/infra/config/config.ts': 'reads addresses, connects to none',
}

const modules = [
  'http',
  'https',
  'http2',
  'net',
  'tls',
  'dgram',
  'dns',
  'dns/promises',
  'child_process',
  'cluster',
  'worker_threads',
  'undici',
  'pg',
  'ioredis',
  'bullmq',
  'openai',
  'ws',
  '@modelcontextprotocol/[a-z/-]+',
].join('|')
/** A module that reaches out, imported for more than its types; or a global that does. */
const reaching = new RegExp(
  `(^|\\n)import (?!type )[^\\n]*?'(node:)?(${modules})(/[^']*)?'|import\\('(node:)?(${modules})|\\bfetch\\(|globalThis\\.fetch|new (WebSocket|EventSource)\\b|process\\.binding`,
)

function sources(folder: string): string[] {
  return readdirSync(join(repository, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.spec.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(repository.length + 1))
}

describe('ways out of the server', () => {
  it('are those that are named here, and no other', () => {
    const files = [...sources('libs'), ...sources('apps/bff'), ...sources('apps/worker')]
    const found = files.filter((file) => reaching.test(readFileSync(join(repository, file), 'utf8')))
    expect(found.toSorted()).toEqual(Object.keys(exits).toSorted())
  })

  it.each([
    `import { request } from 'node:https'`,
    `import net from 'net'`,
    `const { spawn } = await import('node:child_process')`,
    `await fetch('http://x')`,
    `import OpenAI from 'openai'`,
  ])('%s would be noticed', (code) => {
    expect(reaching.test(`import { z } from 'zod'\n${code}\n`)).toBe(true)
  })

  it('types alone are no way out', () => {
    expect(reaching.test(`import type { IncomingMessage } from 'node:http'\nimport { httpTool } from './http.ts'\n`)).toBe(false)
  })
})
