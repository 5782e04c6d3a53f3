/**
 * A whole Lingtai for one test file, served over HTTP on the loopback: on the light tier, or on PostgreSQL and Redis where
 * `npm run test:full` gave them. Close it in afterAll.
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { TokenScope } from '#contracts'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { vectorSettings } from '#infra/prisma/memory-index.repository'
import type { Plugin } from '#runtime/bus/plugin'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'
import type { Overrides } from '../../apps/bff/composition/foundation.ts'
import { startHttpServer } from '../../apps/bff/http/server.ts'
import type { HttpServer, HttpServerOptions } from '../../apps/bff/http/server.ts'
import { fullTierServicesIfAny } from './environment.ts'
import { createFullDatabase } from './full-database.ts'
import { makeTestHome, openTestDatabase } from './light-database.ts'

export type TestSystemOptions = {
  /** Base URL of a fake upstream, ending in /v1; left out, the demo model answers. */
  model?: string
  modelName?: string
  /** Further settings, by the names of their variables. */
  environment?: Record<string, string>
  overrides?: Overrides
  /** Who listens to runs. */
  plugins?: readonly Plugin[]
  http?: HttpServerOptions
  /** The one that the services choose, where left out. */
  tier?: 'light' | 'full'
  /** `silent` unless a test looks for what is wrong with itself. */
  logLevel?: 'info' | 'warn' | 'silent'
}

export type TestSystem = {
  baseUrl: string
  tier: 'light' | 'full'
  system: System
  /** The first owner, an admin. */
  ownerId: string
  token: string
  /** Another owner, a user. */
  ownerBId: string
  ownerBToken: string
  /** A call as the first owner, or with the token that is named; a body that is no string or bytes is sent as JSON. */
  call(method: string, path: string, options?: CallOptions): Promise<CallAnswer>
  /** A fresh token with just these scopes. */
  tokenWith(scopes: readonly TokenScope[], ownerId?: string): Promise<string>
  close(): Promise<void>
}

export type CallOptions = {
  body?: unknown
  /** null = no credentials. */
  token?: string | null
  headers?: Record<string, string>
}

export type CallAnswer = { status: number; headers: Headers; text: string; json: () => unknown }

/** Tests ask faster than people; the limits have tests of their own. */
const unhurried = { owner: { perSecond: 1e5, burst: 1e6 }, stranger: { perSecond: 1e5, burst: 1e6 } }

const everyScope: readonly TokenScope[] = ['read', 'write', 'approve', 'admin']

export async function startTestSystem(options: TestSystemOptions = {}): Promise<TestSystem> {
  const store = await openStore(options.tier)
  const config = loadConfig({
    PORT: '0',
    LINGTAI_HOME: store.home,
    ...store.environment,
    ...(options.model === undefined
      ? {}
      : { OPENAI_BASE_URL: options.model, LINGTAI_MODEL: options.modelName ?? 'test-model', OPENAI_API_KEY: 'test-key' }),
    ...options.environment,
  })
  const system = await composeSystem({
    config,
    logger: createLogger(options.logLevel ?? 'silent'),
    overrides: { ...options.overrides, ...(store.connection ? { connection: store.connection } : {}) },
    plugins: options.plugins ?? [],
  })
  const server = await startHttpServer(system, { checksAnswers: true, limits: unhurried, ...options.http })
  await system.lifecycle.startWork(config.role)
  const ownerB = await system.identity.owners.create({ name: `second-${randomUUID()}`, role: 'user', actor: 'owner' })
  const tokenWith = async (scopes: readonly TokenScope[], ownerId = system.firstOwner.id): Promise<string> => {
    const { token } = await system.identity.tokens.create({
      ownerId,
      name: 'test',
      scopes,
      grantable: new Set(everyScope),
      actor: 'operator',
    })
    if (token === null) throw new Error('a fresh token is shown')
    return token
  }
  const token = await tokenWith(everyScope)
  return {
    baseUrl: server.url,
    tier: config.tier,
    system,
    ownerId: system.firstOwner.id,
    token,
    ownerBId: ownerB.id,
    ownerBToken: await tokenWith(['read', 'write', 'approve'], ownerB.id),
    tokenWith,
    call: (method, path, call = {}) => callServer(server, { method, path, token, ...call }),
    close: async () => {
      await server.close()
      await system.close()
      await store.close()
    },
  }
}

async function callServer(server: HttpServer, call: { method: string; path: string } & CallOptions): Promise<CallAnswer> {
  const isRaw = typeof call.body === 'string' || call.body instanceof Uint8Array
  const response = await fetch(server.url + call.path, {
    method: call.method,
    headers: {
      ...(call.token === null || call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }),
      ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    },
    body: call.body === undefined ? undefined : isRaw ? (call.body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(call.body),
    redirect: 'manual',
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as unknown }
}

export type Store = { home: string; environment: Record<string, string>; connection: pg.PoolConfig | null; close: () => Promise<void> }

/** An empty database of a tier, by the settings and overrides with which a system opens it. */
export async function openStore(tier?: 'light' | 'full'): Promise<Store> {
  const services = fullTierServicesIfAny()
  return services && tier !== 'light' ? openFullStore(services) : openLightStore()
}

async function openLightStore(): Promise<Store> {
  const { home, database, close } = await openTestDatabase({ connections: 1, settings: vectorSettings })
  return { home, environment: {}, connection: { ...database.connection, max: 6 }, close }
}

/** A database of its own on the given server; dropped when closed. Redis keys are kept apart by the database's name. */
async function openFullStore({ databaseUrl, redisUrl }: { databaseUrl: string; redisUrl: string }): Promise<Store> {
  const { url, close } = await createFullDatabase(databaseUrl)
  return { home: makeTestHome(), environment: { DATABASE_URL: url, REDIS_URL: redisUrl }, connection: null, close }
}
