/** Reads streams as a client does, with as little of its own as can be, and notes when what came. Times in ms from the first byte sent. */
import { Agent, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { questionOf } from './script.ts'
import type { Person } from './world.ts'

export type Reading = {
  key: number
  /** To the first text. */
  firstMs: number
  /** From the first text to the last. */
  spanMs: number
  text: string
  complete: boolean
  candidateId: string | null
}

const agent = new Agent({ keepAlive: true })

type Call = { method: string; url: string; token?: string; body?: unknown }

function send({ method, url, token, body }: Call): Promise<IncomingMessage> {
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method,
        agent,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(bytes ? { 'content-type': 'application/json', 'content-length': bytes.length } : {}),
        },
      },
      resolve,
    )
    outgoing.on('error', reject)
    outgoing.end(bytes)
  })
}

async function json<Answer>(call: Call): Promise<Answer> {
  const message = await send(call)
  let text = ''
  message.setEncoding('utf8')
  for await (const piece of message) text += String(piece)
  if (message.statusCode !== 200 && message.statusCode !== 201)
    throw new Error(`${call.method} ${call.url} answered ${message.statusCode}: ${text}`)
  return JSON.parse(text) as Answer
}

/** Hands each data line of a stream over as it comes. */
async function readEvents(message: IncomingMessage, onData: (data: string) => void): Promise<void> {
  let rest = ''
  message.setEncoding('utf8')
  message.on('data', (piece: string) => {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ')) onData(line.slice(6))
  })
  await new Promise<void>((resolve, reject) => {
    message.on('end', resolve)
    message.on('error', reject)
  })
}

function timer() {
  const start = performance.now()
  let first = Number.NaN
  let last = Number.NaN
  return {
    note: (): void => {
      last = performance.now()
      if (Number.isNaN(first)) first = last
    },
    times: () => ({ firstMs: first - start, spanMs: last - first }),
  }
}

/** Straight from an endpoint that speaks the provider's protocol. */
export async function readProvider(baseUrl: string, key: number): Promise<Reading> {
  const clock = timer()
  let text = ''
  let complete = false
  const body = {
    model: 'bench',
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: questionOf(key) }],
  }
  const message = await send({ method: 'POST', url: `${baseUrl}/v1/chat/completions`, body })
  await readEvents(message, (data) => {
    if (data === '[DONE]') return
    const [choice] = (JSON.parse(data) as { choices: { delta: { content?: string }; finish_reason: string | null }[] }).choices
    if (choice?.finish_reason) complete = true
    if (!choice?.delta.content) return
    text += choice.delta.content
    clock.note()
  })
  return { key, ...clock.times(), text, complete, candidateId: null }
}

type RunEvent = { type: string; segments?: { kind: string; text: string }[]; candidate_id?: string }

/** Through Lingtai: asks, follows the run's events to its end. */
export async function readLingtai(baseUrl: string, person: Person, key: number): Promise<Reading> {
  const clock = timer()
  let text = ''
  let complete = false
  const { run_id, candidate_id } = await json<{ run_id: string; candidate_id: string }>({
    method: 'POST',
    url: `${baseUrl}/v1/trees/${person.treeId}/runs`,
    token: person.token,
    body: { text: questionOf(key), parent_id: person.parentId },
  })
  const message = await send({ method: 'GET', url: `${baseUrl}/v1/runs/${run_id}/events`, token: person.token })
  await readEvents(message, (data) => {
    const event = JSON.parse(data) as RunEvent
    if (event.type === 'run.finished') complete = true
    if (event.type !== 'llm.delta') return
    for (const segment of event.segments ?? []) text += segment.text
    clock.note()
  })
  return { key, ...clock.times(), text, complete, candidateId: candidate_id }
}

export async function storedText(baseUrl: string, person: Person, nodeId: string): Promise<string> {
  const { text } = await json<{ text: string }>({ method: 'GET', url: `${baseUrl}/v1/nodes/${nodeId}`, token: person.token })
  return text
}

export function closeReaders(): void {
  agent.destroy()
}
