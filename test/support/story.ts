/** What a client does, as short calls: asks, follows streams, looks at paths. For the suites that tell stories through the API. */
import type { CharacterPage, NodeView, PathView, RunAccepted, RunStreamEvent, RunView, TreeView } from '#contracts'
import type { z } from 'zod'
import { DONE, finishChunk, textChunk, usageChunk } from './fake-upstream.ts'
import type { FakeResponse } from './fake-upstream.ts'
import type { TestSystem } from './system.ts'

type Page = z.output<typeof CharacterPage>

/** A server that one can speak to: a test's own, or one in another process. */
export type Client = Pick<TestSystem, 'call' | 'baseUrl' | 'token'>

/** Calls and expects a status; throws with the whole answer otherwise. */
export async function call<Answer>(
  system: Pick<Client, 'call'>,
  method: string,
  path: string,
  body?: unknown,
  options: { status?: number; token?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { status = 0, token, headers } = options
  const answer = await system.call(method, path, {
    ...(body === undefined ? {} : { body }),
    ...(token === undefined ? {} : { token }),
    ...(headers === undefined ? {} : { headers }),
  })
  if (status === 0 ? answer.status >= 300 : answer.status !== status) {
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`)
  }
  return (answer.text === '' ? undefined : answer.json()) as Answer
}

/** The first character of the owner, and a fresh tree with it. */
export async function newTree(system: Client, options: { token?: string; zone?: string } = {}): Promise<TreeView> {
  const { token } = options
  const page = await call<Page>(system, 'GET', '/v1/characters', undefined, { token })
  const character = page.items[0]
  if (!character) throw new Error('the owner has no character')
  return call<TreeView>(system, 'POST', '/v1/trees', { character_id: character.id, zone: options.zone ?? 'UTC' }, { token })
}

export function ask(
  system: Client,
  treeId: string,
  text: string,
  options: { parent_id?: string; token?: string } = {},
): Promise<RunAccepted> {
  const { token, ...body } = options
  return call<RunAccepted>(system, 'POST', `/v1/trees/${treeId}/runs`, { text, ...body }, { token })
}

/** Follows a run's stream until it ends, or until `until` says so; then the connection is closed. */
export async function follow(
  system: Pick<Client, 'baseUrl' | 'token'>,
  runId: string,
  options: { after?: number; token?: string; signal?: AbortSignal; until?: (event: RunStreamEvent, all: RunStreamEvent[]) => boolean } = {},
): Promise<RunStreamEvent[]> {
  const abort = new AbortController()
  const response = await fetch(`${system.baseUrl}/v1/runs/${runId}/events`, {
    headers: {
      authorization: `Bearer ${options.token ?? system.token}`,
      ...(options.after === undefined ? {} : { 'last-event-id': String(options.after) }),
    },
    signal: options.signal ? AbortSignal.any([abort.signal, options.signal]) : abort.signal,
  })
  if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}: ${await response.text()}`)
  const events: RunStreamEvent[] = []
  let text = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))) {
    text += chunk
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = block.split('\n').find((line) => line.startsWith('data: '))
      const id = block.split('\n').find((line) => line.startsWith('id: '))
      if (data === undefined) continue
      const event = JSON.parse(data.slice(6)) as RunStreamEvent
      if (id !== `id: ${event.seq}`) throw new Error(`an event has ${String(id)} and seq ${event.seq}`)
      events.push(event)
      if (options.until?.(event, events)) {
        abort.abort()
        return events
      }
    }
  }
  return events
}

/** The text that a stream showed. */
export function spoken(events: readonly RunStreamEvent[]): string {
  return events
    .flatMap((event) =>
      event.type === 'llm.delta' ? event.segments.filter((segment) => segment.kind === 'text').map((segment) => segment.text ?? '') : [],
    )
    .join('')
}

export function node(system: Client, nodeId: string, token?: string): Promise<NodeView> {
  return call<NodeView>(system, 'GET', `/v1/nodes/${nodeId}`, undefined, { token })
}

export function path(system: Client, treeId: string, query = ''): Promise<PathView> {
  return call<PathView>(system, 'GET', `/v1/trees/${treeId}/path${query}`)
}

/** Asks and waits for the answer. */
export async function askAndHear(system: Client, treeId: string, text: string, options: { parent_id?: string; token?: string } = {}) {
  const accepted = await ask(system, treeId, text, options)
  const events = await follow(system, accepted.run_id, { token: options.token })
  return { accepted, events, text: spoken(events) }
}

/** Waits until a condition holds; throws after `seconds`. */
export async function eventually<Value>(look: () => Promise<Value | null | undefined | false>, what: string, seconds = 20): Promise<Value> {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const value = await look()
    if (value !== null && value !== undefined && value !== false) return value
    if (Date.now() > end) throw new Error(`${what} did not happen within ${seconds} s`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

export function runEnded(system: Client, runId: string, seconds?: number): Promise<RunView> {
  const look = async (): Promise<RunView | null> => {
    const run = await call<RunView>(system, 'GET', `/v1/runs/${runId}`)
    return run.ended_at === null ? null : run
  }
  return eventually(look, `the end of run ${runId}`, seconds)
}

/** A provider's whole answer: these pieces, a finish_reason, usage, and the end. */
export function answer(...pieces: string[]): FakeResponse {
  return {
    headers: { 'content-type': 'text/event-stream' },
    steps: [...pieces.map(textChunk), finishChunk('stop'), usageChunk(50, pieces.length), DONE],
  }
}
