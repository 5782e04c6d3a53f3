import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { readSecretKeys } from './secret-keys.ts'
import type { SecretKey } from './secret-keys.ts'

/** Which of the two tiers the configuration chooses (spec/0 "Two tiers, one code path"). */
export type Tier = 'light' | 'full'

/** What one process does: answer people, do jobs, or both. */
export type Role = 'all' | 'bff' | 'worker'

/** Where an OpenAI-compatible API is reached. The key is null on loopback endpoints that want none. */
export type ModelEndpointConfig = { baseUrl: string; apiKey: string | null }

export type Config = {
  tier: Tier
  role: Role
  /** TCP port; 0 = any that is free. */
  port: number
  bind: Bind
  /** The instance's own folder, absolute. */
  home: string
  databaseUrl: string | null
  redisUrl: string | null
  /** `endpoint` is null for the built-in demo model. Window in tokens; price in micro-units per million tokens, null where unknown. */
  model: {
    name: string
    demo: boolean
    windowTokens: number
    price: { inputMicros: number; outputMicros: number } | null
    endpoint: ModelEndpointConfig | null
  }
  /** An agent elsewhere that delegated tasks may be given to; null = none. */
  agent: { name: string; endpoint: ModelEndpointConfig } | null
  /** null = the offline embedder. Price in micro-units per million tokens, null where unknown. */
  embedding: { model: string; endpoint: ModelEndpointConfig; priceMicros: number | null } | null
  /** Keys that encrypt what is stored encrypted; the first one encrypts (decision 38). Empty = none given. */
  secretKeys: readonly SecretKey[]
  tools: ToolsConfig
}

/** What the operator allows tools beyond the public internet. */
export type ToolsConfig = {
  /** `host:port` pairs that HTTP tools and MCP servers may lie at although they are not public (decision 34). Lower case. */
  hosts: ReadonlySet<string>
  /** The JSON file that lists the MCP servers which may be started here, absolute; null: none may (decision 36). */
  mcpServersFile: string | null
}

/** Which address is listened on, and which names a request may use for this server (decision 33). */
export type Bind = {
  address: string
  /** Host names beyond the loopback ones, in lower case. */
  hosts: readonly string[]
  /** True where others than this machine can connect: addresses, which cannot be rebound as names can, are then hosts too. */
  beyondLoopback: boolean
}

/** The configuration cannot be used. `faults` name each variable, what is wrong with it and what to do. */
export class ConfigError extends Error {
  readonly faults: readonly { variable: string; fault: string }[]

  constructor(faults: readonly { variable: string; fault: string }[]) {
    super(`the configuration cannot be used:\n${faults.map(({ variable, fault }) => `  ${variable}: ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

export const DEMO_MODEL_NAME = 'lingtai-demo'
const DEFAULT_BASE_URL = 'https://api.openai.com/v1'

const portFault = 'must be a whole number from 0 to 65535, such as 3000'
const windowFault = 'must be the size of the model’s context window in tokens, from 512 to 10000000'

const priceFault = 'must be two whole numbers, micro-units per million tokens read and written, such as 150000,600000'

const embeddingPriceFault = 'must be a whole number, micro-units per million tokens, such as 20000'

const variables = z.object({
  PORT: z.coerce.number(portFault).int(portFault).min(0, portFault).max(65_535, portFault).default(3000),
  LINGTAI_HOME: z.string().default('.lingtai'),
  LINGTAI_HOST: z.string().optional(),
  LINGTAI_ROLE: z.enum(['all', 'bff', 'worker'], 'must be all, bff or worker').default('all'),
  LINGTAI_MODEL: z.string().max(200, 'must be at most 200 characters').optional(),
  LINGTAI_EMBEDDING_MODEL: z.string().max(200, 'must be at most 200 characters').optional(),
  LINGTAI_MODEL_WINDOW: z.coerce.number(windowFault).int(windowFault).min(512, windowFault).max(10_000_000, windowFault).default(8192),
  LINGTAI_MODEL_PRICE: z
    .string()
    .regex(/^\d{1,12},\d{1,12}$/, priceFault)
    .optional(),
  LINGTAI_EMBEDDING_PRICE: z
    .string()
    .regex(/^\d{1,12}$/, embeddingPriceFault)
    .transform(Number)
    .optional(),
  LINGTAI_AGENT_MODEL: z.string().max(200, 'must be at most 200 characters').optional(),
  LINGTAI_AGENT_BASE_URL: urlOf(
    ['http:', 'https:'],
    'must be the URL of an OpenAI-compatible API, such as https://agent.example.com/v1',
  ).optional(),
  LINGTAI_AGENT_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be one word of plain characters; check for a stray space or line break')
    .optional(),
  LINGTAI_SECRET_KEYS: z.string().optional(),
  LINGTAI_TOOL_HOSTS: z.string().optional(),
  LINGTAI_MCP_STDIO: z.string().optional(),
  DATABASE_URL: urlOf(['postgres:', 'postgresql:'], 'must be a URL such as postgresql://user:password@host:5432/database').optional(),
  REDIS_URL: urlOf(['redis:', 'rediss:'], 'must be a URL such as redis://host:6379').optional(),
  OPENAI_BASE_URL: urlOf(['http:', 'https:'], 'must be the URL of an OpenAI-compatible API, such as https://api.example.com/v1').optional(),
  OPENAI_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be one word of plain characters; check for a stray space or line break')
    .optional(),
})

function urlOf(protocols: readonly string[], fault: string) {
  return z.string().refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol), fault)
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the configuration: the only place that reads the process's environment. An empty variable counts as unset.
 * Throws ConfigError with every fault at once.
 */
export function loadConfig(environment: Environment = process.env): Config {
  const given = Object.fromEntries(
    Object.keys(variables.shape).flatMap((name) => {
      const value = environment[name]?.trim()
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )
  const parsed = variables.safeParse(given)
  const faults: { variable: string; fault: string }[] = parsed.success
    ? []
    : parsed.error.issues.map((issue) => ({ variable: String(issue.path[0]), fault: issue.message }))
  if (!parsed.success) throw new ConfigError(faults)
  const read = parsed.data

  const tier = tierOf(read, faults)
  if (tier === 'light' && read.LINGTAI_ROLE !== 'all') {
    faults.push({
      variable: 'LINGTAI_ROLE',
      fault: `${read.LINGTAI_ROLE} needs the full tier, since the light tier is one process; set DATABASE_URL and REDIS_URL, or leave LINGTAI_ROLE out`,
    })
  }
  const config: Config = {
    tier,
    role: read.LINGTAI_ROLE,
    port: read.PORT,
    bind: readBind(read.LINGTAI_HOST, faults),
    home: resolve(read.LINGTAI_HOME),
    databaseUrl: read.DATABASE_URL ?? null,
    redisUrl: read.REDIS_URL ?? null,
    model: {
      name: read.LINGTAI_MODEL ?? DEMO_MODEL_NAME,
      demo: read.LINGTAI_MODEL === undefined,
      windowTokens: read.LINGTAI_MODEL_WINDOW,
      price: read.LINGTAI_MODEL === undefined ? { inputMicros: 0, outputMicros: 0 } : priceOf(read.LINGTAI_MODEL_PRICE),
      endpoint: read.LINGTAI_MODEL === undefined ? null : endpointFor('LINGTAI_MODEL', read, faults),
    },
    agent: agentOf(read, faults),
    embedding:
      read.LINGTAI_EMBEDDING_MODEL === undefined
        ? null
        : {
            model: read.LINGTAI_EMBEDDING_MODEL,
            endpoint: endpointFor('LINGTAI_EMBEDDING_MODEL', read, faults),
            priceMicros: read.LINGTAI_EMBEDDING_PRICE ?? null,
          },
    tools: {
      hosts: readHosts(read.LINGTAI_TOOL_HOSTS, faults),
      mcpServersFile: read.LINGTAI_MCP_STDIO === undefined ? null : resolve(read.LINGTAI_MCP_STDIO),
    },
    secretKeys: readSecretKeys(read.LINGTAI_SECRET_KEYS, (fault) => faults.push({ variable: 'LINGTAI_SECRET_KEYS', fault })),
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

/** The model's price card; null where nobody gave one, so that no bound on cost can be promised (K6). */
function priceOf(given: string | undefined): Config['model']['price'] {
  const [inputMicros, outputMicros] = given?.split(',').map(Number) ?? []
  return inputMicros === undefined || outputMicros === undefined ? null : { inputMicros, outputMicros }
}

type Faults = { variable: string; fault: string }[]
type Read = z.output<typeof variables>

function tierOf(read: Read, faults: Faults): Tier {
  if (read.DATABASE_URL !== undefined && read.REDIS_URL !== undefined) return 'full'
  if (read.DATABASE_URL === undefined && read.REDIS_URL === undefined) return 'light'
  const [present, missing] = read.REDIS_URL === undefined ? ['DATABASE_URL', 'REDIS_URL'] : ['REDIS_URL', 'DATABASE_URL']
  faults.push({ variable: missing, fault: `is missing while ${present} is set; set both for the full tier, or neither for the light one` })
  return 'full'
}

function endpointFor(variable: string, read: Read, faults: Faults): ModelEndpointConfig {
  const baseUrl = (read.OPENAI_BASE_URL ?? DEFAULT_BASE_URL).replace(/\/+$/, '')
  const apiKey = read.OPENAI_API_KEY ?? null
  if (apiKey === null && !isLoopback(new URL(baseUrl).hostname)) {
    faults.push({
      variable: 'OPENAI_API_KEY',
      fault: `is missing: ${variable} at ${new URL(baseUrl).origin} needs a key. Set it, point OPENAI_BASE_URL at a server on this machine, or unset ${variable}`,
    })
  }
  return { baseUrl, apiKey }
}

/** `LINGTAI_AGENT_*`: a model name and where it lives, both or neither. */
function agentOf(read: Read, faults: Faults): Config['agent'] {
  const { LINGTAI_AGENT_MODEL: name, LINGTAI_AGENT_BASE_URL: given, LINGTAI_AGENT_API_KEY: apiKey = null } = read
  if (name === undefined && given === undefined) return null
  if (name === undefined || given === undefined) {
    const [missing, present] =
      name === undefined ? ['LINGTAI_AGENT_MODEL', 'LINGTAI_AGENT_BASE_URL'] : ['LINGTAI_AGENT_BASE_URL', 'LINGTAI_AGENT_MODEL']
    faults.push({ variable: missing, fault: `is missing while ${present} is set; set both for an agent elsewhere, or neither` })
    return null
  }
  const baseUrl = given.replace(/\/+$/, '')
  if (apiKey === null && !isLoopback(new URL(baseUrl).hostname)) {
    faults.push({ variable: 'LINGTAI_AGENT_API_KEY', fault: `is missing: the agent at ${new URL(baseUrl).origin} needs a key` })
  }
  return { name, endpoint: { baseUrl, apiKey } }
}

/** `LINGTAI_HOST`: a comma list of at most one address to listen on and any number of names that requests may use. */
function readBind(value: string | undefined, faults: Faults): Bind {
  const items = (value ?? '127.0.0.1')
    .split(',')
    .map((item) =>
      item
        .trim()
        .toLowerCase()
        .replace(/^\[(.*)\]$/, '$1'),
    )
    .filter((item) => item !== '')
  const addresses = items.filter((item) => isIP(item) !== 0)
  const names = items.filter((item) => isIP(item) === 0)
  const malformed = names.find((name) => !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name) || name.length > 253)
  if (malformed !== undefined || addresses.length > 1) {
    faults.push({
      variable: 'LINGTAI_HOST',
      fault:
        'must be one address to listen on, host names that may be used for this server, or both by comma, such as 0.0.0.0,lingtai.example.org',
    })
  }
  const address = addresses[0] ?? (names.every(isLoopback) ? '127.0.0.1' : '0.0.0.0')
  return { address, hosts: names, beyondLoopback: !isLoopback(address) }
}

/** `LINGTAI_TOOL_HOSTS`: a comma list of `host:port`, hosts as a URL writes them, without brackets. */
function readHosts(value: string | undefined, faults: Faults): ReadonlySet<string> {
  const hosts = new Set<string>()
  for (const item of (value ?? '').split(',').map((text) => text.trim().toLowerCase())) {
    if (item === '') continue
    const [, host = '', port = ''] = /^\[?([a-z0-9.:_-]+?)\]?:(\d{1,5})$/.exec(item) ?? []
    if (host === '' || Number(port) < 1 || Number(port) > 65_535) {
      faults.push({
        variable: 'LINGTAI_TOOL_HOSTS',
        fault: 'must be pairs of host and port by comma, such as localhost:11434,10.0.0.5:8080',
      })
      return hosts
    }
    hosts.add(`${host}:${Number(port)}`)
  }
  return hosts
}

/** True for names and addresses of this machine itself. */
export function isLoopback(host: string): boolean {
  const plain = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return plain === 'localhost' || plain.endsWith('.localhost') || plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))
}
