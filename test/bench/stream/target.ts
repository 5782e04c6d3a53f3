/** What is measured: an address, how to speak to it, and the processes whose CPU it costs. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { fullTierServices } from '../../support/environment.ts'
import { createFullDatabase } from '../../support/full-database.ts'
import { startChild } from '../support/child.ts'
import { cpuMsOfFamily, parentOf } from '../support/process-cpu.ts'
import { makePeople } from './world.ts'
import type { Person } from './world.ts'

/** A service beside the server, and its CPU milliseconds so far. */
export type Service = { name: string; cpuMs(): Promise<number> }

export type Target = {
  name: string
  kind: 'provider' | 'lingtai'
  baseUrl: string
  people: readonly Person[]
  /** The process in the middle, if any. */
  pid: number | null
  services: readonly Service[]
  end(): Promise<void>
}

const server = fileURLToPath(new URL('../../../dist/server.mjs', import.meta.url))

/** Starts the built server of a tier on a database of its own, with so many people in it. */
export async function startTarget(options: {
  tier: 'full' | 'light'
  upstreamUrl: string
  people: number
  profile?: string
}): Promise<Target> {
  const home = mkdtempSync(join(tmpdir(), 'lingtai-bench-'))
  const closers: (() => Promise<void>)[] = [() => Promise.resolve(rmSync(home, { recursive: true, force: true }))]
  const environment: Record<string, string> = {
    PORT: '0',
    LINGTAI_HOME: home,
    OPENAI_BASE_URL: `${options.upstreamUrl}/v1`,
    OPENAI_API_KEY: 'bench',
    LINGTAI_MODEL: 'bench',
  }
  const services: Service[] = []
  if (options.tier === 'full') {
    const { databaseUrl, redisUrl } = fullTierServices()
    const database = await createFullDatabase(databaseUrl)
    closers.push(() => database.close())
    Object.assign(environment, { DATABASE_URL: database.url, REDIS_URL: redisUrl })
    services.push(await postgresService(databaseUrl), redisService(redisUrl, closers))
  }
  const people = await makePeople(environment, options.people)
  if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true })
  const child = await startChild({
    file: server,
    flags: options.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`],
    environment,
    readyLine: /^ {2}Open {5}(http:\S+?)\/$/,
  })
  return {
    name: `${options.tier} tier`,
    kind: 'lingtai',
    baseUrl: child.line[1] ?? '',
    people,
    pid: child.pid,
    services,
    end: async () => {
      await child.end()
      for (const close of closers.toReversed()) await close()
    },
  }
}

async function postgresService(url: string): Promise<Service> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  // Only where the server runs on this machine is its process one of ours to see.
  const postmaster = parentOf(rows[0]?.pid ?? 0)
  await client.end()
  return { name: 'postgres', cpuMs: () => Promise.resolve(cpuMsOfFamily(postmaster)) }
}

function redisService(url: string, closers: (() => Promise<void>)[]): Service {
  const redis = new Redis(url)
  closers.push(async () => void (await redis.quit()))
  return {
    name: 'redis',
    cpuMs: async () => {
      const info = await redis.info('cpu')
      const seconds = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce((sum, match) => sum + Number(match[1]), 0)
      return seconds * 1000
    },
  }
}
