/** One round: runs are going on, a server dies in the middle of them, and everything comes to rest. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ApprovalView, Canonized, EffectView, RunAccepted, RunStreamEvent } from '#contracts'
import { follow } from '../support/story.ts'
import { Moments } from './moments.ts'
import type { Seen } from './moments.ts'
import type { AskPlan, CallPlan, Plan } from './plan.ts'
import { marked } from './provider.ts'
import type { Household, Stage } from './stage.ts'

/** How long to wait for the moment of the kill before it is given up and the server dies anyway. Milliseconds. */
const MOMENT_MS = 12_000
/** How long to wait for a piece on the line to PostgreSQL. */
const PIECE_MS = 500
/** Two leases, one after the other, and a queue place that nobody claimed; on a busy machine. */
const REST_MS = 150_000
/**
 * This often a job's claim is let run out by hand: by itself that takes two minutes, its holder being dead. Where it is alive, the job is
 * done twice at once, and has to be stored once all the same.
 */
const CLAIM_MS = 30_000

/** One ask, and what a client saw of it. */
export type Told = {
  ask: AskPlan
  accepted: RunAccepted | null
  heard: RunStreamEvent[]
  canonized: { status: number; code: string | null; id: string | null } | null
}

export type Played = { plan: Plan; household: Household; told: Told[]; killed: { place: number; seen: Seen | null } }

const isEnd = ({ type }: RunStreamEvent): boolean => type === 'run.finished' || type === 'run.interrupted' || type === 'run.failed'

const ended: ReadonlySet<string> = new Set(['finished', 'interrupted', 'failed'])

export class Round {
  readonly #stage: Stage
  readonly #plan: Plan
  readonly #household: Household
  readonly #moments = new Moments()
  readonly #over = new AbortController()
  readonly #told: Told[]
  readonly #calls: Map<string, CallPlan>
  #killed: Played['killed'] | null = null
  #flows: Promise<unknown> = Promise.resolve()
  #owner: Promise<void> = Promise.resolve()
  #failed = false

  constructor(stage: Stage, plan: Plan, household: Household) {
    this.#stage = stage
    this.#plan = plan
    this.#household = household
    this.#told = plan.asks.map((ask) => ({ ask, accepted: null, heard: [], canonized: null }))
    this.#calls = new Map(plan.asks.flatMap(({ turns }) => turns.flatMap(({ calls }) => calls.map((call) => [call.text, call] as const))))
  }

  /** Everything begins, the server dies and comes back. What goes on after that goes on in the background. */
  async playUntilKilled(): Promise<void> {
    const { asks, kill } = this.#plan
    for (const ask of asks) this.#stage.provider.know(ask, this.#moments, this.#household.sourceName)
    for (const told of this.#told) this.#expectOutside(told)
    const trees = await Promise.all(asks.map(({ character }) => this.#stage.newTree(this.#household, character)))
    const dead = Promise.withResolvers<void>()
    this.#moments.await(kill.name, kill.count, (seen) => void this.#die(seen).then(dead.resolve, dead.reject))
    this.#flows = Promise.all(this.#told.map((told, index) => this.#flow(told, trees[index]?.id ?? '')))
    this.#owner = this.#answerQuestions()
    // Whoever waits for the rest is told of it.
    for (const work of [this.#flows, this.#owner]) work.catch(() => (this.#failed = true))
    const late = setTimeout(() => {
      if (this.#moments.giveUp()) void this.#die(null).then(dead.resolve, dead.reject)
    }, MOMENT_MS)
    try {
      await dead.promise
    } finally {
      clearTimeout(late)
    }
  }

  async #die(seen: Seen | null): Promise<void> {
    const { kill, seed } = this.#plan
    const host = seen?.place ?? (seen?.runId === undefined ? undefined : await this.#stage.placeOf(seen.runId)) ?? seed % 2
    const place = kill.victim === 'host' ? host : 1 - host
    this.#killed = { place, seen }
    const process = this.#stage.two.processAt(place)
    if ('ms' in kill.after) {
      if (kill.after.ms > 0) await pause(kill.after.ms)
      await process.kill()
    } else await this.#dieOnTheLine(place, kill.after)
    await this.#stage.two.revive(place)
  }

  /** The n-th piece that the process sends to PostgreSQL from now on is its last, or the one that it no longer sends. */
  async #dieOnTheLine(place: number, { piece, edge }: { piece: number; edge: 'before' | 'after' }): Promise<void> {
    const line = this.#stage.two.lines[place]?.postgres
    const process = this.#stage.two.processAt(place)
    let sent = 0
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        clearTimeout(late)
        process.kill().then(resolve, reject)
      }
      const late = setTimeout(end, PIECE_MS)
      line?.watch(() => {
        sent += 1
        if (sent === piece) end()
        return sent < piece || (sent === piece && edge === 'after')
      })
    })
    line?.watch(null)
  }

  #expectOutside(told: Told): void {
    const calls = told.ask.turns.flatMap((turn) => turn.calls)
    const here = (): Pick<Seen, 'runId' | 'place'> => (told.accepted ? { runId: told.accepted.run_id } : {})
    this.#stage.outside.expect(calls, {
      arrived: (call) => {
        this.#moments.saw({ name: 'hit', ...here() })
        if (call.tool !== 'look') this.#moments.saw({ name: 'allowed_hit', ...here() })
      },
      answered: () => this.#moments.saw({ name: 'hit_answered', ...here() }),
      lookedUp: () => this.#moments.saw({ name: 'looked_up', ...here() }),
    })
  }

  // ------------------------------------------------------------ what people do

  async #flow(told: Told, treeId: string): Promise<void> {
    const { person } = this.#household
    const { ask } = told
    await pause(ask.startAfterMs)
    const asked = await person.act({
      via: ask.via,
      path: `/v1/trees/${treeId}/runs`,
      body: { text: marked(ask.id) },
      key: `ask-${ask.id}`,
      answered: (place) => this.#moments.saw({ name: 'accepted', place }),
    })
    if (asked.status !== 201) throw new Error(`the ask ${ask.id} was answered ${asked.status}: ${asked.text}`)
    told.accepted = asked.json() as RunAccepted
    await this.#follow(told, told.accepted.run_id)
    if (!ask.canonize || told.heard.at(-1)?.type === undefined || this.#over.signal.aborted) return
    this.#moments.saw({ name: 'canonizing', place: 1 - ask.via })
    const answer = await person.act({
      via: 1 - ask.via,
      path: `/v1/nodes/${told.accepted.candidate_id}/canonize`,
      key: `canonize-${ask.id}`,
      answered: (place) => this.#moments.saw({ name: 'canonized', place }),
    })
    const body = answer.json() as Partial<Canonized> & { code?: string }
    told.canonized = { status: answer.status, code: body.code ?? null, id: body.canonization?.id ?? null }
  }

  /** Reads the run's stream as a client does: from replica to replica, each time from where it was. */
  async #follow(told: Told, runId: string): Promise<void> {
    const { token } = this.#household.person
    for (let place = told.ask.via; !this.#over.signal.aborted; place = 1 - place) {
      const last = told.heard.at(-1)
      if (last && isEnd(last)) return
      try {
        const replica = this.#stage.two.processAt(place)
        await follow({ baseUrl: replica.baseUrl, token }, runId, {
          after: last?.seq ?? 0,
          signal: this.#over.signal,
          until: (event) => {
            told.heard.push(event)
            this.#tell(event, runId)
            return isEnd(event)
          },
        })
      } catch {
        // The replica died, or is not there yet, or the round is over.
        await pause(50)
      }
    }
  }

  #tell({ type }: RunStreamEvent, runId: string): void {
    if (type === 'llm.delta') this.#moments.saw({ name: 'heard', runId })
    if (type === 'tool.executed') this.#moments.saw({ name: 'observed', runId })
    if (type === 'approval.requested') this.#moments.saw({ name: 'requested', runId })
    if (type === 'run.resumed') this.#moments.saw({ name: 'resumed', runId })
    if (type === 'run.finished') this.#moments.saw({ name: 'finished', runId })
  }

  /** The owner answers what they are asked, and finds out what nobody knows, as planned for each call. */
  async #answerQuestions(): Promise<void> {
    const { person } = this.#household
    for (let round = 0; !this.#over.signal.aborted; round++) {
      const { items } = await person.look<{ items: ApprovalView[] }>('GET', '/v1/approvals?state=pending&limit=100')
      for (const approval of items) {
        const decision = this.#callOf(approval)?.decision ?? 'refuse'
        if (decision === 'leave') continue
        const via = (round + approval.arguments_hash.charCodeAt(0)) % 2
        this.#moments.saw({ name: 'deciding', place: via })
        await person.act({
          via,
          path: `/v1/approvals/${approval.id}/decision`,
          body: { decision, arguments_hash: approval.arguments_hash },
          key: `decide-${approval.id}`,
          answered: (place) => this.#moments.saw({ name: 'decided', place }),
        })
      }
      const { items: unknown } = await person.look<{ items: EffectView[] }>('GET', '/v1/effects')
      for (const effect of unknown) {
        const call = this.#callOf(effect)
        if (!call?.settles) continue
        const as = this.#stage.outside.of(call.text).happened > 0 ? 'done' : 'failed'
        await person.act({ via: round % 2, path: `/v1/effects/${effect.id}/reconcile`, body: { as }, key: `settle-${effect.id}` })
      }
      await pause(60)
    }
  }

  #callOf({ arguments: text }: Pick<ApprovalView, 'arguments'>): CallPlan | undefined {
    return this.#calls.get(String((JSON.parse(text ?? '{}') as { text?: string }).text))
  }

  // ------------------------------------------------------------ rest

  /** Waits until nothing moves any more; throws, saying what still does, where that takes too long. */
  async rest(): Promise<Played> {
    const began = Date.now()
    let claims = 1
    let quiet = 0
    try {
      for (;;) {
        const moving = await this.#moving()
        // Its parts are read one after another, and a question may be answered in between: at rest is what was so twice.
        quiet = moving.length === 0 ? quiet + 1 : 0
        if (quiet === 2 || this.#failed) break
        if (Date.now() - began > REST_MS) throw new Error(`it does not come to rest: ${moving.join(', ')}`)
        if (Date.now() - began > claims * CLAIM_MS) {
          claims += 1
          await this.#stage.observer.database.execute(
            `UPDATE outbox SET claimed_until = clock_timestamp() WHERE owner_id = $1::uuid AND closed_at IS NULL AND claimed_until IS NOT NULL`,
            [this.#household.ownerId],
          )
        }
        await pause(250)
      }
    } finally {
      this.#over.abort()
      await Promise.all([this.#flows, this.#owner])
    }
    if (!this.#killed) throw new Error('nobody died')
    return { plan: this.#plan, household: this.#household, told: this.#told, killed: this.#killed }
  }

  async #moving(): Promise<string[]> {
    const { database } = this.#stage.observer
    const owner = [this.#household.ownerId]
    const runs = await database.query<{ id: string; kind: string; state: string; reason: string | null }>(
      'SELECT id, kind, state, reason FROM runs WHERE owner_id = $1::uuid',
      owner,
    )
    const waits = new Set(runs.flatMap(({ id, state, reason }) => (state === 'suspended' && reason !== 'waiting_for_effect' ? [id] : [])))
    const atWork = runs.filter(({ id, state }) => !waits.has(id) && !ended.has(state))
    const jobs = await database.query<{ id: string; attempts: number; last_error: string | null }>(
      'SELECT id, attempts, last_error FROM outbox WHERE owner_id = $1::uuid AND closed_at IS NULL',
      owner,
    )
    return [
      ...this.#told.flatMap((told) => this.#untold(told, waits)),
      ...(await this.#undecided()),
      ...atWork.map(({ id, kind, state, reason }) => `${kind} run ${id} is ${state}${reason === null ? '' : ` (${reason})`}`),
      ...jobs.map(({ id, attempts, last_error: error }) => `job ${id} is open after ${attempts} attempts (${error})`),
    ]
  }

  /** What its client still waits for. A run that waits for a person who will not come tells nothing more. */
  #untold({ ask, accepted, heard, canonized }: Told, waits: ReadonlySet<string>): string[] {
    const last = heard.at(-1)
    if (!accepted) return [`${ask.id} was not accepted yet`]
    if (last?.type === 'run.suspended' && waits.has(accepted.run_id)) return []
    if (!last || !isEnd(last)) return [`the reader of ${ask.id} has heard no end`]
    return ask.canonize && !canonized ? [`${ask.id} is to be canonized`] : []
  }

  async #undecided(): Promise<string[]> {
    const { person } = this.#household
    const approvals = await person.look<{ items: ApprovalView[] }>('GET', '/v1/approvals?state=pending&limit=100')
    const effects = await person.look<{ items: EffectView[] }>('GET', '/v1/effects')
    return [
      ...approvals.items.filter((item) => this.#callOf(item)?.decision !== 'leave').map(({ id }) => `approval ${id} is pending`),
      ...effects.items.filter((item) => this.#callOf(item)?.settles === true).map(({ id }) => `effect ${id} is unknown`),
    ]
  }
}
