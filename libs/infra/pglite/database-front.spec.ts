import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Backend } from './backend.ts'
import { DatabaseFront } from './database-front.ts'
import { messagesOf, queryMessage, startupMessage } from './wire-protocol.ts'

/** A backend that notes each query, echoes it, and is in a transaction between BEGIN and COMMIT or ROLLBACK. */
class EchoBackend implements Backend {
  readonly greeting = Buffer.from('<hello>')
  readonly seen: string[] = []
  #inTransaction = false

  async execute(batch: Uint8Array, onData: (bytes: Uint8Array) => void): Promise<void> {
    const [message] = messagesOf(batch)
    const sql = message?.kind === 'query' ? message.sql : 'no query'
    this.seen.push(sql)
    if (sql === 'BEGIN') this.#inTransaction = true
    if (sql === 'COMMIT' || sql === 'ROLLBACK') this.#inTransaction = false
    onData(Buffer.from(`<${sql}>`))
  }

  query = async (): Promise<Record<string, unknown>[]> => []
  isInTransaction = (): boolean => this.#inTransaction
  close = async (): Promise<void> => {}
}

let folder: string
let backend: EchoBackend
let front: DatabaseFront
let now: number

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lingtai-test-'))
  backend = new EchoBackend()
  now = 0
  front = new DatabaseFront({ backend, now: () => now })
  await front.listen(join(folder, 's'))
})
afterEach(() => {
  front.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A greeted client that remembers what it was answered. */
async function startClient(): Promise<{ ask: (sql: string) => void; answers: () => string; socket: Socket }> {
  const socket = connect(join(folder, 's'))
  let answers = ''
  socket.on('data', (chunk) => (answers += chunk.toString()))
  socket.on('error', () => undefined)
  socket.write(startupMessage({ user: 'u' }))
  await vi.waitFor(() => expect(answers).toBe('<hello>'))
  answers = ''
  return { ask: (sql) => void socket.write(queryMessage(sql)), answers: () => answers, socket }
}

describe('DatabaseFront', () => {
  it('lets the holder of a transaction go before those who waited longer', async () => {
    const [holder, other] = [await startClient(), await startClient()]
    holder.ask('BEGIN')
    await vi.waitFor(() => expect(holder.answers()).toBe('<BEGIN>'))
    other.ask('SELECT other')
    holder.ask('SELECT holder')
    holder.ask('COMMIT')
    await vi.waitFor(() => expect(other.answers()).toBe('<SELECT other>'))
    expect(backend.seen).toEqual(['BEGIN', 'SELECT holder', 'COMMIT', 'SELECT other'])
  })

  it('rolls back for a holder that leaves, before anyone else goes', async () => {
    const [holder, other] = [await startClient(), await startClient()]
    holder.ask('BEGIN')
    await vi.waitFor(() => expect(holder.answers()).toBe('<BEGIN>'))
    other.ask('SELECT other')
    holder.socket.destroy()
    await vi.waitFor(() => expect(other.answers()).toBe('<SELECT other>'))
    expect(backend.seen).toEqual(['BEGIN', 'ROLLBACK', 'SELECT other'])
  })

  it('runs nothing of a client that left while it waited', async () => {
    const [holder, leaver] = [await startClient(), await startClient()]
    holder.ask('BEGIN')
    await vi.waitFor(() => expect(holder.answers()).toBe('<BEGIN>'))
    leaver.ask('SELECT leaver')
    leaver.socket.destroy()
    const last = await startClient()
    holder.ask('COMMIT')
    last.ask('SELECT last')
    await vi.waitFor(() => expect(last.answers()).toBe('<SELECT last>'))
    expect(backend.seen).toEqual(['BEGIN', 'COMMIT', 'SELECT last'])
  })

  it('cuts a holder only when it is unused for the limit while others wait', async () => {
    const [holder, other] = [await startClient(), await startClient()]
    holder.ask('BEGIN')
    await vi.waitFor(() => expect(holder.answers()).toBe('<BEGIN>'))
    now = 60_000
    expect(front.cutIdleHolder(30_000)).toBeUndefined()

    holder.ask('SELECT holder')
    await vi.waitFor(() => expect(holder.answers()).toBe('<BEGIN><SELECT holder>'))
    other.ask('SELECT other')
    now = 89_000
    const third = await startClient()
    expect(front.cutIdleHolder(30_000)).toBeUndefined()

    now = 90_000
    expect(front.cutIdleHolder(30_000)).toBe(30_000)
    await vi.waitFor(() => expect(holder.answers()).toContain('25P03'))
    await vi.waitFor(() => expect(other.answers()).toBe('<SELECT other>'))
    expect(third.answers()).toBe('')
  })

  it('gives the backend to a task only while no client has it, and serves those who come meanwhile afterwards', async () => {
    const client = await startClient()
    const taken = await front.runWhileFree(async () => {
      client.ask('SELECT 1')
      expect(await front.runWhileFree(async () => {})).toBe(false)
      backend.seen.push('task')
    })
    expect(taken).toBe(true)
    await vi.waitFor(() => expect(client.answers()).toBe('<SELECT 1>'))
    expect(backend.seen).toEqual(['task', 'SELECT 1'])

    client.ask('BEGIN')
    await vi.waitFor(() => expect(client.answers()).toBe('<SELECT 1><BEGIN>'))
    expect(await front.runWhileFree(async () => {})).toBe(false)
    expect(front.idleMs()).toBe(0)
  })

  it('replaces a refused batch by one that raises the refusal', async () => {
    const client = await startClient()
    client.ask('SET x = 1')
    await vi.waitFor(() => expect(client.answers()).not.toBe(''))
    expect(backend.seen).toEqual([expect.stringMatching(/^DO LANGUAGE plpgsql 'BEGIN RAISE EXCEPTION.*a session SET/)])
  })

  it('ends the connection of a client that speaks no Postgres', async () => {
    const client = await startClient()
    client.socket.write('GET / HTTP/1.1\r\n\r\n')
    await vi.waitFor(() => expect(client.answers()).toContain('08P01'))
    await vi.waitFor(() => expect(client.socket.closed).toBe(true))
  })
})
