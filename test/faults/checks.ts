/** What has to be true of a round that has come to rest. Each check answers what is wrong, in words. */
import type { EventRecord, NodeView, RunStreamEvent, RunView } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import { follow, spoken } from '../support/story.ts'
import { checkEffects } from './check-effects.ts'
import { checkExtractions } from './check-extractions.ts'
import type { Played, Told } from './round.ts'
import type { Household, Stage } from './stage.ts'

export async function checkRound(stage: Stage, played: Played): Promise<string[]> {
  const { household, told } = played
  const runs = await runsOf(stage, household.ownerId)
  const faults = [
    ...checkAdmission(told, runs),
    ...(await checkSeats(stage, household.ownerId)),
    ...(await checkStreams(stage, household.ownerId)),
    ...(await checkExtractions(stage, played)),
  ]
  for (const run of runs) faults.push(...checkState(run), ...(await checkReplay(stage, run)))
  for (const one of told) {
    const run = runs.find(({ id }) => id === one.accepted?.run_id)
    if (!run) continue
    const events = (await stage.observer.log.read(`run:${run.id}`)).map(({ record }) => record)
    faults.push(
      ...(await checkAnswer(stage, played, one, run)),
      ...(await checkEffects(stage, { told: one, run, events })),
      ...checkOrder(run, events),
    )
  }
  return faults
}

async function runsOf(stage: Stage, ownerId: string): Promise<RunRow[]> {
  const { database, conversation } = stage.observer
  const rows = await database.query<{ id: string }>('SELECT id FROM runs WHERE owner_id = $1::uuid ORDER BY requested_at, id', [ownerId])
  const found = await Promise.all(rows.map(({ id }) => conversation.runStore.get(id)))
  return found.flatMap((run) => run ?? [])
}

/** An ask that was tried on both replicas under one key is one run, and none was lost. */
function checkAdmission(told: readonly Told[], runs: readonly RunRow[]): string[] {
  const asked = told.map(({ accepted }) => accepted?.run_id)
  const seated = runs.filter(({ seated: isSeated }) => isSeated).map(({ id }) => id)
  return [
    ...asked.flatMap((id, index) => (id !== undefined && seated.includes(id) ? [] : [`the ask ${told[index]?.ask.id} has no run`])),
    ...seated.flatMap((id) => (asked.includes(id) ? [] : [`run ${id} was asked for by nobody`])),
  ]
}

/** It ended, or waits for a person; where it was cut short, that is because its server died. */
function checkState({ id, kind, state, reason }: RunRow): string[] {
  const waits = state === 'suspended' && (reason === 'waiting_for_approval' || reason === 'reconcile_required')
  const isFair = state === 'finished' || waits || (state === 'interrupted' && (reason === 'lease_expired' || kind === 'maintenance'))
  return isFair ? [] : [`${kind} run ${id} is ${state} (${reason})`]
}

async function checkSeats(stage: Stage, ownerId: string): Promise<string[]> {
  const held = await stage.observer.database.query<{ id: string }>(
    `SELECT id FROM runs WHERE owner_id = $1::uuid AND (state = 'running' OR lease_until IS NOT NULL)`,
    [ownerId],
  )
  return held.map(({ id }) => `run ${id} holds on to its seat`)
}

/** No event is lost: streams are whole from 1 to their head, and nothing is left of an answer in the making. */
async function checkStreams(stage: Stage, ownerId: string): Promise<string[]> {
  const { database } = stage.observer
  const torn = await database.query<{ stream: string }>(
    `SELECT e.stream FROM events e WHERE e.owner_id = $1::uuid GROUP BY e.stream
     HAVING min(e.seq) <> 1 OR max(e.seq) <> count(*) OR max(e.seq) <> (SELECT h.seq FROM streams h WHERE h.stream = e.stream)`,
    [ownerId],
  )
  const segments = await database.query<{ run_id: string }>(
    `SELECT DISTINCT s.run_id FROM segments s JOIN runs r ON r.id = s.run_id WHERE r.owner_id = $1::uuid AND r.ended_at IS NOT NULL`,
    [ownerId],
  )
  return [
    ...torn.map(({ stream }) => `stream ${stream} has a gap`),
    ...segments.map(({ run_id: id }) => `run ${id} ended and left pieces of its answer behind`),
  ]
}

/** The loop's rules over what was recorded: an end is the last word, and there is one. */
function checkOrder(run: RunRow, events: readonly EventRecord[]): string[] {
  const ends = events.filter(({ type }) => type === 'run.finished' || type === 'run.interrupted' || type === 'run.failed')
  if (run.ended_at === null) return ends.length === 0 ? [] : [`run ${run.id} recorded an end and goes on`]
  const last = events.at(-1)
  return [
    ...checkLoss(run, events),
    ...(ends.length === 1 && ends[0] === last && last?.type === `run.${run.state}`
      ? []
      : [`run ${run.id} is ${run.state} and ends with ${ends.map(({ type }) => type).join(', ')} before ${last?.type}`]),
  ]
}

/** A run whose owner died ends where words were coming in, were being taken as the answer, or nothing had begun; anywhere else it goes on. */
function checkLoss(run: RunRow, events: readonly EventRecord[]): string[] {
  if (run.reason !== 'lease_expired' || run.kind === 'maintenance') return []
  const wasSpeaking = events.some(({ type, cause }) => type === 'llm.unknown' && cause.tag === 'lease_expired')
  const before = events.findLast(({ cause }) => cause.tag !== 'lease_expired' && cause.tag !== 'steer')
  const wasAccepting = before?.type === 'turn.finished'
  const hadBegun = events.some(({ type }) => type === 'run.started')
  return wasSpeaking || wasAccepting || !hadBegun ? [] : [`run ${run.id} was given up after ${before?.type}, where it could go on`]
}

async function checkReplay(stage: Stage, run: RunRow): Promise<string[]> {
  const { log, conversation } = stage.observer
  const commands = await conversation.replays.commands(run)
  const contexts = await conversation.replays.everyContext(run)
  const outline = async () => (await log.read(`run:${run.id}`)).map(({ record: { seq, type, cause } }) => `${seq} ${type} (${cause.tag})`)
  return [
    ...(commands.result === 'identical'
      ? []
      : [`the commands of ${run.kind} run ${run.id} replay as ${JSON.stringify(commands)}: ${(await outline()).join(', ')}`]),
    ...contexts.flatMap(({ turn, result }) => (result === 'identical' ? [] : [`turn ${turn} of run ${run.id} rebuilds ${result}`])),
  ]
}

/** What a client saw is what is there; what was cut short looks so, and what looks whole is whole (M7). */
async function checkAnswer(stage: Stage, { household }: Played, { ask, heard, canonized }: Told, run: RunRow): Promise<string[]> {
  const faults: string[] = []
  const wrong = (what: string): void => void faults.push(`${ask.id} (run ${run.id}, ${run.state}): ${what}`)
  const events = await publicEvents(stage, household, run)
  const seen = JSON.stringify(events.slice(0, heard.length))
  if (JSON.stringify(heard) !== seen) wrong(`its reader heard ${JSON.stringify(heard)} of ${JSON.stringify(events)}`)
  for (const [index, event] of events.entries()) {
    if (event.prev_seq !== (events[index - 1]?.seq ?? 0)) wrong(`its stream has a gap before ${event.seq}`)
  }
  const whole = ask.turns.flatMap((turn) => turn.pieces.map(({ text }) => text)).join('')
  const said = spoken(events)
  if (run.state === 'finished' ? said !== whole : !whole.startsWith(said)) wrong(`it said ${JSON.stringify(said)}`)

  const { database } = stage.observer
  const [row] = await database.query<{ sealed: boolean; partial: boolean }>('SELECT sealed, partial FROM nodes WHERE id = $1::uuid', [
    run.candidate_id,
  ])
  if (!row) {
    if (said !== '' || run.state === 'finished') wrong('it has no candidate')
    return faults
  }
  if (said === '') wrong('it said nothing and has a candidate')
  const isEnded = run.ended_at !== null
  if (row.sealed !== isEnded) wrong(`its candidate is ${row.sealed ? 'sealed before its end' : 'still open'}`)
  if (isEnded && row.partial !== (run.state !== 'finished')) wrong(`its candidate is ${row.partial ? 'partial' : 'whole'}`)
  if (isEnded) {
    const { parts } = await household.person.look<NodeView>('GET', `/v1/nodes/${run.candidate_id}`)
    const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('')
    if (text !== said) wrong(`its candidate reads ${JSON.stringify(text)}, its stream ${JSON.stringify(said)}`)
  }
  if (canonized && row.partial && canonized.code !== 'partial_not_canonizable') wrong(`a part was canonized: ${canonized.status}`)
  return faults
}

/** The run's stream as it can be read now, up to its end or to where it waits. */
async function publicEvents(stage: Stage, { person }: Household, run: RunRow): Promise<RunStreamEvent[]> {
  const { last_seq: last } = await person.look<RunView>('GET', `/v1/runs/${run.id}`)
  return follow({ baseUrl: stage.apiUrl, token: person.token }, run.id, { until: ({ seq }) => seq >= last })
}
