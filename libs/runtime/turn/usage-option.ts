import type { ChatRequestBody, ModelFailure } from '#kernel/ports/model-gateway'
import type { EndpointQuirks } from './ports.ts'

/**
 * Whether a run's requests ask for usage with `stream_options` (decision 39): as is known of the endpoint, and as its refusals show. Where a
 * request that asks is called a bad one, the same is tried without; only an answer then tells that it was this that was not taken.
 */
export class UsageOption {
  readonly #quirks: EndpointQuirks
  #refused = false

  constructor(quirks: EndpointQuirks) {
    this.#quirks = quirks
  }

  async isAskedFor(): Promise<boolean> {
    return !this.#refused && (await this.#quirks.takesStreamOptions())
  }

  /** True where the request is worth building anew without the option: at most once in a run. */
  isRefusedBy(failure: ModelFailure, body: ChatRequestBody): boolean {
    const isRefusal = failure.code === 'bad_request' && (failure.status === 400 || failure.status === 422)
    if (!isRefusal || body.stream_options === undefined) return false
    this.#refused = true
    return true
  }

  /** The endpoint answered this request to the end. */
  async learnFrom(body: ChatRequestBody): Promise<void> {
    if (body.stream_options !== undefined) await this.#quirks.keep(true)
    else if (this.#refused) await this.#quirks.keep(false)
  }
}
