/** The server as it is shipped, in a process of its own, for tests with more than one of them on one PostgreSQL and one Redis. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { makeTestHome } from './light-database.ts'
import type { CallAnswer, CallOptions } from './system.ts'

const server = fileURLToPath(new URL('../../dist/server.mjs', import.meta.url))

export type Replica = {
  baseUrl: string
  pid: number
  /** A call with the token that the replica was given, as the first owner. */
  call(method: string, path: string, options?: CallOptions): Promise<CallAnswer>
  token: string
  /** SIGSTOP: it does nothing more and does not know it. */
  pause(): void
  goOn(): void
  /** kill −9, and waits for its end. */
  kill(): Promise<void>
  /** Asks it to end, and waits for that. */
  end(): Promise<void>
}

/** Builds the server where what is built is not what stands here. */
export async function buildServer(): Promise<void> {
  const steps = new URL('../../scripts/bootstrap/up-to-date.mjs', import.meta.url).href
  const { bringUpToDate } = (await import(steps)) as { bringUpToDate: (names: readonly string[]) => Promise<void> }
  await bringUpToDate(['server'])
}

export async function startReplica({ environment, token }: { environment: Record<string, string>; token: string }): Promise<Replica> {
  const child = spawn(process.execPath, [server], {
    env: { PATH: '/usr/bin:/bin', PORT: '0', LINGTAI_HOME: makeTestHome(), LINGTAI_ROLE: 'bff', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let complaints = ''
  child.stderr.on('data', (bytes: Buffer) => {
    complaints += bytes.toString('utf8')
  })
  let baseUrl: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    baseUrl = /^ {2}Open {5}(http:\S+?)\/$/.exec(line)?.[1]
    if (baseUrl !== undefined) break
  }
  if (baseUrl === undefined || child.pid === undefined) throw new Error(`the replica did not start:\n${complaints}`)
  child.stdout.resume()
  const { pid } = child
  const url = baseUrl
  return {
    baseUrl,
    pid,
    token,
    call: (method, path, options) => callUrl({ url: url + path, method, token, ...options }),
    pause: () => void process.kill(pid, 'SIGSTOP'),
    goOn: () => void process.kill(pid, 'SIGCONT'),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await ended
    },
  }
}

async function callUrl({ url, method, token, body, headers }: { url: string; method: string } & CallOptions): Promise<CallAnswer> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token === null || token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as unknown }
}
