import { chmodSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { AdminRequest, LONGEST_LINE, parseLine } from './messages.ts'
import type { AdminReply } from './messages.ts'
import { makeAdminSocketPath } from './socket-path.ts'

export type HandleAdminRequest = (request: AdminRequest, note: (text: string) => void) => Promise<Exclude<AdminReply, { note: string }>>

const SILENT_AFTER_MS = 10_000

/** Lets commands of the same user reach this server (decision 2): whoever may open the socket's folder may do what an operator may. */
export async function serveAdminSocket({
  home,
  handle,
}: {
  home: string
  handle: HandleAdminRequest
}): Promise<{ close: () => Promise<void> }> {
  const { path, remove } = makeAdminSocketPath(home)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // A command that was interrupted: nobody is left to be told.
    socket.on('error', () => socket.destroy())
    void answer(socket, handle)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  chmodSync(path, 0o600)
  return {
    close: async () => {
      const closed = new Promise((resolve) => {
        server.close(resolve)
      })
      for (const socket of sockets) socket.destroy()
      await closed
      remove()
    },
  }
}

async function answer(socket: Socket, handle: HandleAdminRequest): Promise<void> {
  const say = (reply: AdminReply): void => {
    if (socket.writable) socket.write(`${JSON.stringify(reply)}\n`)
  }
  const line = await firstLine(socket)
  const request = line === null ? null : parseLine(AdminRequest, line)
  if (request) say(await handle(request, (note) => say({ note })))
  else say({ error: 'this is no request', isUsage: true })
  socket.end()
}

/** The first line, or null where none comes in time, or it is too long. */
async function firstLine(socket: Socket): Promise<string | null> {
  socket.setTimeout(SILENT_AFTER_MS, () => socket.destroy())
  let length = 0
  socket.on('data', (piece: Buffer) => {
    length += piece.byteLength
    if (length > LONGEST_LINE) socket.destroy()
  })
  for await (const line of createInterface({ input: socket })) {
    socket.setTimeout(0)
    return line
  }
  return null
}
