import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { AdminReply, parseLine } from './messages.ts'
import type { AdminRequest } from './messages.ts'
import { findAdminSocket } from './socket-path.ts'

export type AdminAnswer = Exclude<AdminReply, { note: string }>

/** Asks the server that runs on the home; null where none listens. */
export async function callAdminSocket(home: string, request: AdminRequest, onNote: (note: string) => void): Promise<AdminAnswer | null> {
  const socket = await open(home)
  if (!socket) return null
  socket.write(`${JSON.stringify(request)}\n`)
  try {
    for await (const line of createInterface({ input: socket })) {
      const reply = parseLine(AdminReply, line)
      if (reply && 'note' in reply) onNote(reply.note)
      else if (reply) return reply
    }
    return { error: 'the server ended before it answered', isUsage: false }
  } finally {
    socket.destroy()
  }
}

async function open(home: string): Promise<Socket | null> {
  const path = findAdminSocket(home)
  if (path === null) return null
  const socket = connect(path)
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(socket))
    socket.once('error', (error: NodeJS.ErrnoException) => {
      // Left behind by a server that was killed.
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(null)
      else reject(error)
    })
  })
}
