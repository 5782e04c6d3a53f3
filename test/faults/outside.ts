/** The world outside: a server of its own that remembers what really happened, whatever anybody thinks of it. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { CallPlan, ToolName } from './plan.ts'

export type OutsideHooks = {
  /** A call has arrived and is about to be done. What is awaited holds it. */
  arrived(call: CallPlan): Promise<void> | void
  answered(call: CallPlan): void
  lookedUp(): void
}

/** What became of one call here. */
export type Happening = { arrivals: number; happened: number; keys: Set<string> }

export type Outside = {
  host: string
  /** Answers calls with these texts as planned from now on. */
  expect(calls: readonly CallPlan[], hooks: OutsideHooks): void
  of(text: string): Happening
  close(): Promise<void>
}

const nothing: Happening = { arrivals: 0, happened: 0, keys: new Set() }

export async function startOutside(): Promise<Outside> {
  const planned = new Map<string, { call: CallPlan; hooks: OutsideHooks }>()
  const happenings = new Map<string, Happening>()
  /** Per key: what it is bound to. Only where something happened under it. */
  const keys = new Map<string, { bodyHash: string; text: string }>()
  const shyOf = new Set<string>()

  /** Does it, once per key where keys are honoured; false where the key is another request's. */
  const happen = (tool: ToolName, text: string, key: string, bodyHash: string): boolean => {
    const known = key === '' ? undefined : keys.get(`${tool} ${key}`)
    if (known) return known.bodyHash === bodyHash
    const happening = happenings.get(text)
    if (happening) happening.happened += 1
    if (tool === 'keyed' || tool === 'shy') keys.set(`${tool} ${key}`, { bodyHash, text })
    return true
  }

  const lookUp = (tool: ToolName, key: string, response: ServerResponse): void => {
    for (const { hooks } of planned.values()) hooks.lookedUp()
    if (tool === 'shy' && !shyOf.has(key)) {
      shyOf.add(key)
      return answer(response, 503, { error: 'ask again' })
    }
    const known = keys.get(`${tool} ${key}`)
    answer(response, known ? 200 : 404, known ? { sent: known.text } : { error: 'unknown key' })
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, tool, name] = `${request.url}//`.split('/') as [string, ToolName, string]
    const body = await bodyOf(request)
    if (request.method === 'GET' && tool !== 'look') return lookUp(tool, decodeURIComponent(name), response)
    const text = request.method === 'GET' ? decodeURIComponent(name) : String((JSON.parse(body) as { text: unknown }).text)
    const plan = planned.get(text)
    if (!plan) return answer(response, 400, { error: 'nobody planned this' })
    const key = String(request.headers['idempotency-key'] ?? '')
    const happening = happenings.get(text) ?? { arrivals: 0, happened: 0, keys: new Set() }
    happenings.set(text, happening)
    happening.arrivals += 1
    if (key !== '') happening.keys.add(key)
    const { call, hooks } = plan
    await hooks.arrived(call)
    if (call.behaviour === 'cut_before') return void request.socket.destroy()
    if (call.behaviour === 'refuse') answer(response, 422, { error: 'not like this' })
    else if (!happen(tool, text, key, createHash('sha256').update(body).digest('hex'))) answer(response, 409, { error: 'key taken' })
    else {
      if (call.behaviour === 'late') await pause(call.pauseMs)
      if (call.behaviour === 'cut_after') request.socket.destroy()
      else if (call.behaviour === 'error_after') answer(response, 500, { error: 'something broke here' })
      else answer(response, 200, { done: text })
    }
    hooks.answered(call)
  }

  const server = createServer((request, response) => {
    // A killed server leaves in the middle of its call; that is what this suite is about.
    serve(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    expect: (calls, hooks) => {
      for (const call of calls) planned.set(call.text, { call, hooks })
    },
    of: (text) => happenings.get(text) ?? nothing,
    close: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString('utf8')
}
