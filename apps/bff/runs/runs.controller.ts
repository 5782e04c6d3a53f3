import { Controller, Res } from '@nestjs/common'
import type { Response } from 'express'
import { z } from 'zod'
import {
  CommandAccepted,
  Evidence,
  Explanation,
  ExplanationQuery,
  LingtaiError,
  RunAccepted,
  RunListQuery,
  RunPage,
  RunStreamEvent,
  RunView,
  Steer,
} from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { AskService } from '#domains/mirror-tree/ask.service'
import { parseCursor } from '#domains/mirror-tree/tree.service'
import { EvidenceService } from '#domains/record/evidence.service'
import { ReplayService } from '#domains/runs/replay.service'
import { RunService } from '#domains/runs/run.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { eventStream } from '../http/route-shapes.ts'
import { RunStreams } from './run-streams.ts'

type Own = { principal: Principal; params: { id: string } }
const EventsQuery = z.object({ after: z.coerce.number().int().min(0).optional() })

/** Runs: watched, stopped, interjected, explained. */
@Controller()
export class RunsController {
  constructor(
    private readonly runs: RunService,
    private readonly streams: RunStreams,
    private readonly replays: ReplayService,
    private readonly evidences: EvidenceService,
    private readonly asks: AskService,
  ) {}

  @ApiRoute({ method: 'GET', path: '/v1/runs', summary: 'Your runs, newest first', access: 'read', query: RunListQuery, answer: RunPage })
  async list(
    @Input() { principal, query }: { principal: Principal; query: z.output<typeof RunListQuery> },
  ): Promise<z.output<typeof RunPage>> {
    const cursor = parseCursor(query.cursor)
    const { items, next_cursor } = await this.runs.list({
      ownerId: principal.ownerId,
      state: query.state,
      characterId: query.character_id,
      treeId: query.tree_id,
      before: cursor && { requestedAt: cursor.updatedAt, id: cursor.id },
      limit: query.limit,
    })
    return { items, next_cursor }
  }

  @ApiRoute({ method: 'GET', path: '/v1/runs/{id}', summary: 'A run, with its place in the queue', access: 'read', answer: RunView })
  read(@Input() { principal, params }: Own): Promise<RunView> {
    return this.runs.get(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/runs/{id}/events',
    summary: 'What happens in a run, as it happens',
    description:
      'Server-sent events; `id` is the sequence number, gaps are internal events. `Last-Event-ID` or `after` resumes without gap or double. ' +
      'Comments are heartbeats. After the run’s end the stream ends. Leaving does not stop the run.',
    access: 'read',
    query: EventsQuery,
    answer: eventStream(RunStreamEvent),
  })
  async events(
    @Input()
    {
      principal,
      params,
      query,
      request,
    }: Own & { query: z.output<typeof EventsQuery>; request: { headers: Record<string, string | string[] | undefined> } },
    @Res() response: Response,
  ): Promise<void> {
    const run = await this.runs.row(principal.ownerId, params.id)
    await this.streams.send({ run, after: query.after ?? lastEventId(request.headers['last-event-id']), response })
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/runs/{id}/cancel',
    summary: 'Stop a run; what it said stays as a partial',
    access: 'write',
    answer: CommandAccepted,
    idempotent: false,
  })
  cancel(@Input() { principal, params }: Own): Promise<CommandAccepted> {
    return this.runs.cancel(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/runs/{id}/continue',
    summary: 'Go on with an answer that ran out of budget or whose process had to leave, as another candidate',
    access: 'write',
    answer: RunAccepted,
    status: 201,
    keep: (answer) => ({ id: answer.run_id }),
    rebuild: (self: RunsController, { principal }, { id }) => self.asks.accepted(principal.ownerId, id),
  })
  continue(@Input() { principal, params }: Own): Promise<RunAccepted> {
    return this.asks.continue(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/runs/{id}/steer',
    summary: 'Interject: the run takes it in with its next turn',
    access: 'write',
    body: Steer,
    answer: CommandAccepted,
    status: 202,
    keep: (answer) => ({ id: answer.command_id }),
    rebuild: async (self: RunsController, { principal, params }, { id }) => ({
      command_id: id,
      run: await self.runs.get(principal.ownerId, params.id),
    }),
  })
  steer(@Input() { principal, params, body }: Own & { body: Steer }): Promise<CommandAccepted> {
    return this.runs.steer(principal.ownerId, params.id, body.text)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/runs/{id}/explanation',
    summary: 'Why it said that: every prompt entity with its source, and what was left out',
    access: 'read',
    query: ExplanationQuery,
    answer: Explanation,
  })
  async explanation(@Input() { principal, params, query }: Own & { query: z.output<typeof ExplanationQuery> }): Promise<Explanation> {
    return this.replays.explain(await this.runs.row(principal.ownerId, params.id), query.turn)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/runs/{id}/evidence',
    summary: 'Everything about a run that somebody else needs to check it by',
    description:
      'One JSON file: events with the bytes that their hashes cover, contents with salts, what was decided and used, the newest signed anchor ' +
      'and the way to it. Save it as it is sent and run `node scripts/verify-evidence.mjs FILE`. Erased texts stay erased.',
    access: 'read',
    answer: Evidence,
  })
  evidence(@Input() { principal, params }: Own): Promise<Evidence> {
    return this.evidences.of(principal.ownerId, params.id)
  }
}

function lastEventId(header: string | string[] | undefined): number {
  if (header === undefined || header === '') return 0
  const value = Number(header)
  if (Array.isArray(header) || !Number.isSafeInteger(value) || value < 0) {
    throw new LingtaiError('validation_failed', undefined, {
      errors: [{ path: 'headers.last-event-id', message: 'must be a sequence number' }],
    })
  }
  return value
}
