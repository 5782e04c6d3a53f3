/** The server as it is shipped, in a process of its own, for tests with more than one of them on one PostgreSQL and one Redis. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { makeTestHome } from './light-database.ts'
import type { CallAnswer, CallOptions } from './system.ts'

const server = fileURLToPath(new URL('../../dist/server.mjs', import.meta.url))

/** A running server; `as` is what somebody with a token sees of it. */
export type ReplicaProcess = {
  baseUrl: string
  pid: number
  /** False once it has ended, however that was. */
  isAlive(): boolean
  /** SIGSTOP: it does nothing more and does not know it. */
  pause(): void
  goOn(): void
  /** kill −9, and waits for its end. */
  kill(): Promise<void>
  /** Asks it to end, and waits for that. */
  end(): Promise<void>
  as(token: string): Replica
}

export type Replica = ReplicaProcess & { token: string; call(method: string, path: string, options?: CallOptions): Promise<CallAnswer> }

/** Starts the server's bundle, which `npm run test:full` brings up to date; resolves when it listens. */
export async function startReplica(environment: Record<string, string>): Promise<ReplicaProcess> {
  const child = spawn(process.execPath, [server], {
    env: { PATH: '/usr/bin:/bin', PORT: '0', LINGTAI_HOME: makeTestHome(), ...environment },
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
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null
  const replica: ReplicaProcess = {
    baseUrl,
    pid,
    isAlive,
    pause: () => void child.kill('SIGSTOP'),
    goOn: () => void child.kill('SIGCONT'),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    end: async () => {
      if (!isAlive()) return
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await ended
    },
    as: (token) => ({ ...replica, token, call: (method, path, options) => callUrl({ url: url + path, method, token, ...options }) }),
  }
  return replica
}

export async function callUrl({ url, method, token, body, headers }: { url: string; method: string } & CallOptions): Promise<CallAnswer> {
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
