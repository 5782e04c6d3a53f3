import { existsSync, lstatSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { callAdminSocket } from './call.ts'
import { serveAdminSocket } from './serve.ts'
import type { HandleAdminRequest } from './serve.ts'
import { adminSocketPath, findAdminSocket } from './socket-path.ts'

let home: string
let running: { close: () => Promise<void> } | undefined
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'lingtai-home-'))
})
afterEach(async () => {
  await running?.close()
  running = undefined
  rmSync(home, { recursive: true, force: true })
})

const echo: HandleAdminRequest = async ({ verb, options }, note) => {
  note(`working on ${verb}`)
  return { value: `${verb} ${options['name'] ?? ''}`, ok: true }
}

const ask = async (notes: string[] = [], at = home) =>
  callAdminSocket(at, { verb: 'token', options: { name: '青' } }, (note) => notes.push(note))

describe('the admin socket', () => {
  it('answers a command, notes first', async () => {
    running = await serveAdminSocket({ home, handle: echo })
    const notes: string[] = []
    expect(await ask(notes)).toEqual({ value: 'token 青', ok: true })
    expect(notes).toEqual(['working on token'])
  })

  it('lies in a folder that is the owner’s alone, whatever was there', async () => {
    mkdirSync(join(home, 'run'), { mode: 0o777 })
    running = await serveAdminSocket({ home, handle: echo })
    expect(statSync(join(home, 'run')).mode & 0o777).toBe(0o700)
    expect(statSync(adminSocketPath(home)).mode & 0o077).toBe(0)
  })

  it('is nobody where none was started, where it has ended, and where one was killed', async () => {
    expect(await ask()).toBeNull()
    const server = await serveAdminSocket({ home, handle: echo })
    await server.close()
    expect(existsSync(adminSocketPath(home))).toBe(false)
    expect(await ask()).toBeNull()
    const killed = createServer()
    await new Promise<void>((resolve) => void killed.listen(adminSocketPath(home), resolve))
    // What a kill leaves: the file without a listener. Closing would remove it, so it is put back.
    await new Promise((resolve) => void killed.close(resolve))
    writeFileSync(adminSocketPath(home), '')
    expect(await ask()).toBeNull()
    running = await serveAdminSocket({ home, handle: echo })
    expect(await ask()).toEqual({ value: 'token 青', ok: true })
  })

  it('works from a home whose path is too long for a socket', async () => {
    const deep = join(home, 'x'.repeat(60), 'y'.repeat(60))
    mkdirSync(deep, { recursive: true })
    const server = await serveAdminSocket({ home: deep, handle: echo })
    const short = readlinkSync(adminSocketPath(deep))
    expect(lstatSync(dirname(short)).mode & 0o777).toBe(0o700)
    expect(await ask([], deep)).toEqual({ value: 'token 青', ok: true })
    await server.close()
    expect(existsSync(short)).toBe(false)
    expect(findAdminSocket(deep)).toBeNull()
  })

  it.each(['nonsense\n', '{"verb":1}\n', `{"verb":"token","options":{"name":"${'x'.repeat(2000)}"}}\n`])(
    'refuses what is no request',
    async (line) => {
      running = await serveAdminSocket({ home, handle: () => Promise.reject(new Error('must not be reached')) })
      const reply = await new Promise<string>((resolve, reject) => {
        const socket = connect(adminSocketPath(home), () => socket.write(line))
        let text = ''
        socket.on('data', (piece) => (text += String(piece)))
        socket.on('end', () => resolve(text))
        socket.on('error', reject)
      })
      expect(JSON.parse(reply)).toMatchObject({ isUsage: true })
    },
  )

  it('closes although a command still waits', async () => {
    const reached = Promise.withResolvers<void>()
    const server = await serveAdminSocket({
      home,
      handle: () => {
        reached.resolve()
        return new Promise(() => undefined)
      },
    })
    const waiting = ask()
    await reached.promise
    await server.close()
    expect(await waiting).toEqual({ error: 'the server ended before it answered', isUsage: false })
  })
})
