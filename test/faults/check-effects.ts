/** What a run did, as the world outside has it, the ledger, and the run itself: all three have to agree (K3; cases E7–E9, E20). */
import type { EventPayload, EventRecord } from '#contracts'
import type { EffectState } from '#kernel/effects/effect'
import type { RunRow } from '#kernel/ports/run-store'
import type { CallPlan } from './plan.ts'
import type { Told } from './round.ts'
import type { Stage } from './stage.ts'

type Effect = { id: string; state: EffectState; arguments_content_id: string; consequence: string }

export async function checkEffects(
  stage: Stage,
  { told, run, events }: { told: Told; run: RunRow; events: readonly EventRecord[] },
): Promise<string[]> {
  const { database, contents } = stage.observer
  const effects = await database.query<Effect>('SELECT id, state, arguments_content_id, consequence FROM effects WHERE run_id = $1::uuid', [
    run.id,
  ])
  const texts = await contents.get(effects.map((effect) => effect.arguments_content_id))
  const nameOf = (effect: Effect): string =>
    (JSON.parse(texts.get(effect.arguments_content_id)?.body ?? '{}') as { text?: string }).text ?? ''
  const calls = told.ask.turns.flatMap((turn) => turn.calls)
  const faults = effects
    .filter((effect) => !calls.some(({ text }) => text === nameOf(effect)))
    .map(({ id }) => `effect ${id} of ${told.ask.id} was planned by nobody`)
  for (const call of calls) {
    const own = effects.filter((effect) => nameOf(effect) === call.text)
    if (own.length > 1) faults.push(`${call.text} has ${own.length} effects`)
    faults.push(...checkCall(stage, { call, effect: own[0], run }), ...checkWord(stage, { call, effect: own[0], run, events }))
  }
  return faults
}

function checkCall(stage: Stage, { call, effect, run }: { call: CallPlan; effect: Effect | undefined; run: RunRow }): string[] {
  const { arrivals, happened, keys } = stage.outside.of(call.text)
  const faults: string[] = []
  const wrong = (what: string): void =>
    void faults.push(
      `${call.text} (${call.tool}, ${call.behaviour}, ${call.decision}; effect ${effect?.id} ${effect?.state}; ${run.state}): ${what}`,
    )
  // Nothing is ever sent twice, keys or no keys.
  if (arrivals > 1) wrong(`arrived ${arrivals} times`)
  if (happened > 1) wrong(`happened ${happened} times`)
  if (keys.size > 1) wrong(`came under ${keys.size} keys`)
  if (call.tool !== 'look' && call.decision !== 'approve' && arrivals > 0) wrong('was sent without a yes')
  switch (effect?.state) {
    case 'done':
    case 'reconciled_done':
      if (happened !== 1) wrong(`happened ${happened} times`)
      break
    case 'failed':
    case 'reconciled_failed':
      if (happened !== 0) wrong('happened all the same')
      break
    case 'denied':
    case undefined:
      if (arrivals !== 0) wrong('was sent all the same')
      break
    case 'intent':
    case 'executing':
      wrong('is left open')
      break
    case 'unknown':
      if (effect.consequence === 'none') wrong('is read, unknown, and nobody gave it up')
      else if (call.settles) wrong('was not settled by its owner')
      break
    case 'abandoned':
      if (effect.consequence !== 'none') wrong('is lasting and was given up')
      break
  }
  return faults
}

/** What the run says of it, to its model and its readers. */
function checkWord(
  stage: Stage,
  { call, effect, run, events }: { call: CallPlan; effect: Effect | undefined; run: RunRow; events: readonly EventRecord[] },
): string[] {
  const { happened } = stage.outside.of(call.text)
  const intent = events.find((event) => event.type === 'effect.intent' && event.payload['effect_id'] === effect?.id)
  const actionId = effect && intent ? (intent.payload as EventPayload<'effect.intent'>).action_id : null
  const words = events.flatMap(({ type, payload }) =>
    type === 'tool.executed' && actionId !== null && (payload as EventPayload<'tool.executed'>).action_id === actionId
      ? [(payload as EventPayload<'tool.executed'>).status]
      : [],
  )
  const faults: string[] = []
  if (effect && !intent) faults.push(`${call.text} has an effect without an intent on record`)
  if (words.length > 1) faults.push(`${call.text} was observed ${words.length} times`)
  if (effect && words.length === 0 && run.state === 'finished') faults.push(`${call.text} was observed by nobody, and its run finished`)
  if (words[0] === 'done' && happened !== 1) faults.push(`${call.text} is told as done and happened ${happened} times`)
  if ((words[0] === 'failed' || words[0] === 'denied') && happened > 0) faults.push(`${call.text} is told as ${words[0]} and happened`)
  return faults
}
