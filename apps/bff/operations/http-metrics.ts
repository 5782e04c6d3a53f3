import { Counter, Gauge, Histogram } from 'prom-client'
import type { Registry } from 'prom-client'

/** What the edge counts. Routes by their documented path, so that ids never become labels. */
export class HttpMetrics {
  readonly #requests: Counter<'method' | 'route' | 'status'>
  readonly #seconds: Histogram<'method' | 'route'>
  readonly #inFlight: Gauge

  constructor(registry: Registry) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'lingtai_http_requests_total',
      help: 'Requests served, by route and status.',
      labelNames: ['method', 'route', 'status'],
      registers,
    })
    this.#seconds = new Histogram({
      name: 'lingtai_http_request_seconds',
      help: 'Time from a request to the end of its answer; streams last as long as their run.',
      labelNames: ['method', 'route'],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
      registers,
    })
    this.#inFlight = new Gauge({
      name: 'lingtai_http_requests_in_flight',
      help: 'Requests being served now, streams among them.',
      registers,
    })
  }

  /** Notes a request; call the answer when its response has closed. */
  begin(): (end: { method: string; route: string; status: number }) => void {
    this.#inFlight.inc()
    const startedAt = performance.now()
    return ({ method, route, status }) => {
      this.#inFlight.dec()
      this.#requests.inc({ method, route, status })
      this.#seconds.observe({ method, route }, (performance.now() - startedAt) / 1000)
    }
  }
}
