import type { IncomingMessage } from 'node:http'
import type { Principal } from '#domains/identity/principal'

/** What the edge knows of one request while it is being served. */
export type RequestState = {
  /** Names the request in the answer, in logs and in what it causes. */
  traceId: string
  principal: Principal | null
  /** The route's path as documented, for logs and metrics; null where none matched. */
  route: string | null
  /** Parameters, query and body as the route's schemas left them. */
  input: unknown
}

const states = new WeakMap<IncomingMessage, RequestState>()

export function beginRequest(request: IncomingMessage, traceId: string): RequestState {
  const state: RequestState = { traceId, principal: null, route: null, input: null }
  states.set(request, state)
  return state
}

/** The state of a request that went through the edge's first middleware, as every one does. */
export function stateOf(request: IncomingMessage): RequestState {
  const state = states.get(request)
  if (!state) throw new Error('the request did not come through the edge')
  return state
}
