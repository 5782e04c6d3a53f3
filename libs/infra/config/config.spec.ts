import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from './config.ts'

const full = { DATABASE_URL: 'postgresql://u:p@db/lingtai', REDIS_URL: 'redis://cache' }

function faultsOf(environment: Record<string, string>): Record<string, string> {
  try {
    loadConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return Object.fromEntries(error.faults.map(({ variable, fault }) => [variable, fault]))
    throw error
  }
  return {}
}

describe('the configuration', () => {
  it('needs nothing: light tier, demo model, this machine only', () => {
    expect(loadConfig({})).toEqual({
      tier: 'light',
      role: 'all',
      port: 3000,
      bind: { address: '127.0.0.1', hosts: [], beyondLoopback: false },
      home: resolve('.lingtai'),
      databaseUrl: null,
      redisUrl: null,
      model: {
        name: 'lingtai-demo',
        demo: true,
        windowTokens: 8192,
        price: { inputMicros: 0, outputMicros: 0 },
        endpoint: null,
      },
      agent: null,
      embedding: null,
      secretKeys: [],
      tools: { hosts: new Set(), mcpServersFile: null },
    })
  })

  it('reads where tools may reach beyond the public internet, and which servers may be started', () => {
    expect(
      loadConfig({ LINGTAI_TOOL_HOSTS: 'LocalHost:11434, [::1]:080,box.example:8080', LINGTAI_MCP_STDIO: 'servers.json' }).tools,
    ).toEqual({
      hosts: new Set(['localhost:11434', '::1:80', 'box.example:8080']),
      mcpServersFile: resolve('servers.json'),
    })
    for (const hosts of ['localhost', 'localhost:0', 'localhost:99999', 'http://localhost:80', 'a b:80']) {
      expect(() => loadConfig({ LINGTAI_TOOL_HOSTS: hosts }), hosts).toThrow('LINGTAI_TOOL_HOSTS')
    }
  })

  it('takes an empty variable as unset', () => {
    expect(loadConfig({ LINGTAI_MODEL: '', DATABASE_URL: '  ', PORT: '' })).toMatchObject({
      tier: 'light',
      port: 3000,
      model: { demo: true },
    })
  })

  it('chooses the full tier by both services, and refuses one alone with what to do', () => {
    expect(loadConfig(full).tier).toBe('full')
    expect(faultsOf({ DATABASE_URL: full.DATABASE_URL })['REDIS_URL']).toMatch(/set both .* or neither/)
    expect(faultsOf({ REDIS_URL: full.REDIS_URL })['DATABASE_URL']).toMatch(/set both .* or neither/)
  })

  it.each(['bff', 'worker'])('knows the role %s on the full tier only', (role) => {
    expect(loadConfig({ ...full, LINGTAI_ROLE: role }).role).toBe(role)
    expect(faultsOf({ LINGTAI_ROLE: role })['LINGTAI_ROLE']).toMatch(/full tier/)
  })

  it('refuses a model without a key unless it runs on this machine', () => {
    expect(faultsOf({ LINGTAI_MODEL: 'gpt' })['OPENAI_API_KEY']).toMatch(/api\.openai\.com needs a key/)
    expect(faultsOf({ LINGTAI_MODEL: 'gpt', OPENAI_BASE_URL: 'http://192.168.0.4:1234/v1' })['OPENAI_API_KEY']).toBeDefined()
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.8.9.1']) {
      const baseUrl = `http://${host}:11434/v1`
      expect(loadConfig({ LINGTAI_MODEL: 'llama', OPENAI_BASE_URL: `${baseUrl}/` }).model).toEqual({
        name: 'llama',
        demo: false,
        windowTokens: 8192,
        price: null,
        endpoint: { baseUrl, apiKey: null },
      })
    }
    expect(loadConfig({ LINGTAI_MODEL: 'gpt', OPENAI_API_KEY: 'sk-1' }).model.endpoint).toEqual({
      baseUrl: 'https://api.openai.com/v1',
      apiKey: 'sk-1',
    })
  })

  it('asks the same of the embedding model', () => {
    expect(faultsOf({ LINGTAI_EMBEDDING_MODEL: 'e' })['OPENAI_API_KEY']).toMatch(/LINGTAI_EMBEDDING_MODEL/)
    expect(loadConfig({ LINGTAI_EMBEDDING_MODEL: 'e', OPENAI_API_KEY: 'k' }).embedding?.model).toBe('e')
  })

  it('knows an agent elsewhere by name and place, and asks for its key unless it runs on this machine', () => {
    const agent = { LINGTAI_AGENT_MODEL: 'a', LINGTAI_AGENT_BASE_URL: 'https://agent.example/v1/' }
    expect(loadConfig({}).agent).toBeNull()
    expect(loadConfig({ ...agent, LINGTAI_AGENT_API_KEY: 'k' }).agent).toEqual({
      name: 'a',
      endpoint: { baseUrl: 'https://agent.example/v1', apiKey: 'k' },
    })
    expect(loadConfig({ ...agent, LINGTAI_AGENT_BASE_URL: 'http://127.0.0.1:9/v1' }).agent?.endpoint.apiKey).toBeNull()
    expect(faultsOf(agent)['LINGTAI_AGENT_API_KEY']).toMatch(/agent\.example needs a key/)
    expect(faultsOf({ LINGTAI_AGENT_MODEL: 'a' })['LINGTAI_AGENT_BASE_URL']).toMatch(/set both/)
    expect(faultsOf({ LINGTAI_AGENT_BASE_URL: 'http://127.0.0.1:9/v1' })['LINGTAI_AGENT_MODEL']).toMatch(/set both/)
  })

  it.each([
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['LINGTAI_ROLE', 'server'],
    ['LINGTAI_MODEL_WINDOW', '100'],
    ['LINGTAI_MODEL_WINDOW', 'big'],
    ['DATABASE_URL', 'mysql://x'],
    ['REDIS_URL', 'localhost:6379'],
    ['OPENAI_BASE_URL', 'ftp://x'],
    ['OPENAI_API_KEY', 'two words'],
    ['LINGTAI_HOST', '0.0.0.0,127.0.0.1'],
    ['LINGTAI_HOST', 'a b'],
    ['LINGTAI_SECRET_KEYS', 'nokey'],
    ['LINGTAI_SECRET_KEYS', 'a:short'],
  ])('refuses %s=%s and names it', (variable, value) => {
    expect(Object.keys(faultsOf({ [variable]: value }))).toContain(variable)
  })

  it('tells every fault at once, never a secret', () => {
    const key = Buffer.alloc(16, 7).toString('base64')
    const faults = faultsOf({ LINGTAI_ROLE: 'worker', LINGTAI_MODEL: 'gpt', LINGTAI_SECRET_KEYS: `a:${key}` })
    expect(Object.keys(faults).sort()).toEqual(['LINGTAI_ROLE', 'LINGTAI_SECRET_KEYS', 'OPENAI_API_KEY'])
    expect(JSON.stringify(faults)).not.toContain(key)
  })

  it.each([
    ['0.0.0.0', { address: '0.0.0.0', hosts: [], beyondLoopback: true }],
    ['::', { address: '::', hosts: [], beyondLoopback: true }],
    ['[::1]', { address: '::1', hosts: [], beyondLoopback: false }],
    ['localhost', { address: '127.0.0.1', hosts: ['localhost'], beyondLoopback: false }],
    ['127.0.0.1,Chat.Example.org', { address: '127.0.0.1', hosts: ['chat.example.org'], beyondLoopback: false }],
    ['chat.example.org', { address: '0.0.0.0', hosts: ['chat.example.org'], beyondLoopback: true }],
  ])('reads LINGTAI_HOST=%s as address and names', (value, bind) => {
    expect(loadConfig({ LINGTAI_HOST: value }).bind).toEqual(bind)
  })

  it('reads secret keys in base64 and hex, the first one first', () => {
    const one = Buffer.alloc(32, 1)
    const two = Buffer.alloc(32, 2)
    const keys = loadConfig({ LINGTAI_SECRET_KEYS: `new:${one.toString('base64')}, old:${two.toString('hex')}` }).secretKeys
    expect(keys.map(({ id, key }) => [id, Buffer.from(key)])).toEqual([
      ['new', one],
      ['old', two],
    ])
    expect(faultsOf({ LINGTAI_SECRET_KEYS: `a:${one.toString('hex')},a:${two.toString('hex')}` })['LINGTAI_SECRET_KEYS']).toMatch(/twice/)
  })
})
