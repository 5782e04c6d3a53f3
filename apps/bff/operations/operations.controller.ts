import { Controller } from '@nestjs/common'
import type { Registry } from 'prom-client'
import { z } from 'zod'
import { LingtaiError } from '#contracts'
import { ApiRoute } from '../http/api-route.ts'
import { fileAnswer } from '../http/route-shapes.ts'
import type { SentFile } from '../http/route-shapes.ts'

/** One thing that must work before requests are taken; rejects, or takes too long, where it does not. */
export type ReadinessCheck = { name: string; check: () => Promise<void> }

const CHECK_WITHIN_MS = 2_000

/** What the operator's tools ask of a process. */
export class Operations {
  readonly #checks: readonly ReadinessCheck[]
  readonly #stopping: AbortSignal
  readonly metrics: Registry

  constructor(parts: { checks: readonly ReadinessCheck[]; stopping: AbortSignal; metrics: Registry }) {
    this.#checks = parts.checks
    this.#stopping = parts.stopping
    this.metrics = parts.metrics
  }

  /** The names of what does not work. */
  async faults(): Promise<string[]> {
    if (this.#stopping.aborted) return ['stopping']
    const results = await Promise.allSettled(this.#checks.map(({ check }) => within(CHECK_WITHIN_MS, check())))
    return results.flatMap((result, index) => (result.status === 'rejected' ? (this.#checks[index]?.name ?? []) : []))
  }
}

const Health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' })

/** Health and metrics; no content, no names. */
@Controller()
export class OperationsController {
  constructor(private readonly operations: Operations) {}

  @ApiRoute({ method: 'GET', path: '/health/live', summary: 'Whether the process runs', access: 'public', answer: Health })
  async live(): Promise<{ status: 'ok' }> {
    return { status: 'ok' }
  }

  @ApiRoute({
    method: 'GET',
    path: '/health/ready',
    summary: 'Whether requests can be served: the services answer and no shutdown has begun',
    access: 'public',
    answer: Health,
  })
  async ready(): Promise<{ status: 'ok' }> {
    const faults = await this.operations.faults()
    if (faults.length > 0) throw new LingtaiError('unavailable', `Not ready: ${faults.join(', ')}.`)
    return { status: 'ok' }
  }

  @ApiRoute({
    method: 'GET',
    path: '/metrics',
    summary: 'Counters in Prometheus’ text format',
    access: 'public',
    answer: fileAnswer('text/plain'),
  })
  async metrics(): Promise<SentFile> {
    const { metrics } = this.operations
    return { bytes: Buffer.from(await metrics.metrics()), type: metrics.contentType }
  }
}

async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds} ms`)), milliseconds)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
