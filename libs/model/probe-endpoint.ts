import type { ChatRequestBody, ModelFailure, ModelGateway, ModelStreamEvent } from '#kernel/ports/model-gateway'

/** What an endpoint can do, found out once and stored by the caller (decision 39). */
export type EndpointQuirks = {
  /** It takes `stream_options` and gives usage. Where it does not, requests leave them out and usage is estimated. */
  takesStreamOptions: boolean
}

export type ProbeResult =
  { result: 'reached'; quirks: EndpointQuirks } | { result: 'failed'; failure: ModelFailure } | { result: 'unknown' }

const probeBody = (model: string, withOptions: boolean): ChatRequestBody => ({
  model,
  stream: true,
  ...(withOptions ? { stream_options: { include_usage: true } } : {}),
  messages: [{ role: 'user', content: 'Say: ok' }],
})

const lastOf = async (gateway: ModelGateway, body: ChatRequestBody, signal: AbortSignal): Promise<ModelStreamEvent | undefined> => {
  let last: ModelStreamEvent | undefined
  for await (const event of gateway.stream({ body, bodyText: JSON.stringify(body), purpose: 'answer', signal })) {
    last = event
    // The first word tells enough; leaving closes the connection.
    if (event.type === 'text' || event.type === 'reasoning') break
  }
  return last
}

/**
 * Asks an endpoint for one word, with stream_options and, where that is a bad request, without. Costs a few tokens. `failed` is the endpoint's
 * own no (or that it was not reached); `unknown` where it broke off.
 */
export const probeEndpoint = async (gateway: ModelGateway, probe: { model: string; signal: AbortSignal }): Promise<ProbeResult> => {
  const first = await lastOf(gateway, probeBody(probe.model, true), probe.signal)
  const isRefused = first?.type === 'failed' && first.code === 'bad_request'
  const last = isRefused ? await lastOf(gateway, probeBody(probe.model, false), probe.signal) : first
  if (last?.type === 'failed') return { result: 'failed', failure: last }
  if (last === undefined || last.type === 'interrupted') return { result: 'unknown' }
  return { result: 'reached', quirks: { takesStreamOptions: !isRefused } }
}
