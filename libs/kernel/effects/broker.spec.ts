import { describe, expect, it } from 'vitest'
import type { Constraint } from '#contracts'
import type { EffectLedger, EffectRow } from '../ports/effect-ledger.ts'
import type { EffectCall, EffectOutcome, EffectTarget, LookUp, Observation, ToolContract } from '../ports/effect-target.ts'
import { EffectBroker } from './broker.ts'
import type { EffectState } from './effect.ts'

const observation: Observation = {
  mediaType: 'text/plain',
  text: 'sent',
  source: 'mail',
  at: '2026-01-01T00:00:00.000Z',
  licence: null,
  trust: 'untrusted',
  truncated: false,
}
const contract: ToolContract = {
  name: 'mail.send',
  description: 'Sends.',
  parameters: { type: 'object' },
  capability: 'irreversible_external',
  consequence: 'lasting',
  egress: 'declared',
  undoable: false,
  priceMicros: 1,
  version: 'a'.repeat(64),
}
const call: EffectCall = {
  effectId: 'effect',
  ownerId: 'owner',
  characterId: 'character',
  runId: 'run',
  treeId: null,
  tool: 'mail.send',
  arguments: { text: 'hello' },
  idempotencyKey: 'action',
  argumentsHash: 'b'.repeat(64),
  constraints: ['exact_arguments'],
  signal: new AbortController().signal,
}

/** An answer that never comes. */
const never = Symbol('never')
type Never = typeof never

type Timer = { milliseconds: number; callback(): void }

type Scene = {
  /** What the target knows of the key; an error where it cannot say. */
  known?: LookUp | null | Error | Never
  outcome?: EffectOutcome | Error | Never
  consequence?: ToolContract['consequence']
  /** What happens while everybody waits. */
  meanwhile?: (timers: Timer[]) => void
  enforces?: Constraint[]
  /** The ledger's row. */
  state?: EffectState
  claimed?: boolean
  stillMine?: boolean
  allowed?: true | string
  signal?: AbortSignal
}

/** One dispatch, with everything that was done for it, in order. */
async function dispatch({
  known = null,
  outcome = { type: 'done', observation, costMicros: 1 },
  enforces = ['exact_arguments'],
  state = 'intent',
  claimed = true,
  stillMine = true,
  allowed = true,
  signal = call.signal,
  consequence = 'lasting',
  meanwhile,
}: Scene) {
  const steps: string[] = []
  const timers: Timer[] = []
  const signals: AbortSignal[] = []
  const reported: unknown[] = []
  const effect = { id: 'effect', state, constraints: ['exact_arguments'], code: null, cost_micros: 1 } as unknown as EffectRow
  const done = async <T>(step: string, answer: T | Error | Never): Promise<T> => {
    steps.push(step)
    if (answer === never) {
      setImmediate(() => meanwhile?.(timers))
      return new Promise<T>(() => undefined)
    }
    if (answer instanceof Error) throw answer
    return answer
  }
  const ledger = {
    claim: () => done('claim', claimed ? { fence: 7 } : null),
    release: (_: string, fence: number) => done(`release ${fence}`, undefined),
    markExecuting: (_: string, fence: number) => done(`executing ${fence}`, stillMine),
    get: () => done('get', effect),
  } as unknown as EffectLedger
  const target: EffectTarget = {
    enforces: () => new Set(enforces),
    lookUp: () => done('look up', known),
    execute: ({ signal: given }) => {
      signals.push(given)
      return done('send', outcome)
    },
  }
  const after = (milliseconds: number, callback: () => void) => {
    const timer = { milliseconds, callback }
    timers.push(timer)
    return () => void timers.splice(timers.indexOf(timer), 1)
  }
  const broker = new EffectBroker({ ledger, scheduler: { after }, holder: 'me', report: (error) => reported.push(error) })
  const dispatched = await broker.dispatch({
    effect,
    contract: { ...contract, consequence },
    target,
    call: { ...call, signal },
    stillAllowed: () => done('still allowed?', allowed),
  })
  return { dispatched, steps, reported, broker, target, timers, signals }
}

describe('EffectBroker (K3)', () => {
  it('asks the target first, then whether it may still, then marks the send, then sends once', async () => {
    const { dispatched, steps } = await dispatch({ known: { type: 'absent' } })
    expect(dispatched).toMatchObject({ type: 'done' })
    expect(steps).toEqual(['claim', 'look up', 'still allowed?', 'executing 7', 'send'])
  })

  it('does not run what it cannot hold to its constraints, one that it does not know among them', async () => {
    expect(await dispatch({ enforces: [] })).toMatchObject({ dispatched: { type: 'denied', code: 'constraint_unavailable' }, steps: [] })
  })

  it('leaves pending what the target cannot be asked about, and gives the claim back', async () => {
    for (const known of [{ type: 'unavailable' } as const, new Error('deaf')]) {
      const { dispatched, steps } = await dispatch({ known })
      expect(dispatched).toEqual({ type: 'pending', code: 'look_up_unavailable' })
      expect(steps).toEqual(['claim', 'look up', 'release 7'])
    }
  })

  it('sends nothing that has happened already under the same key and arguments', async () => {
    const { dispatched, steps } = await dispatch({ known: { type: 'committed', argumentsHash: call.argumentsHash, observation } })
    expect(dispatched).toEqual({ type: 'done', observation, costMicros: null })
    expect(steps).not.toContain('send')
  })

  it('sends nothing under a key that the target knows with other arguments', async () => {
    const { dispatched, steps } = await dispatch({ known: { type: 'committed', argumentsHash: 'c'.repeat(64), observation } })
    expect(dispatched).toEqual({ type: 'denied', code: 'bound_to_other_arguments' })
    expect(steps).not.toContain('send')
  })

  it('asks once more right before it sends: what was revoked or cancelled meanwhile is not sent', async () => {
    expect(await dispatch({ allowed: 'not_granted' })).toMatchObject({
      dispatched: { type: 'denied', code: 'not_granted' },
      steps: ['claim', 'look up', 'still allowed?'],
    })
    expect(await dispatch({ signal: AbortSignal.abort() })).toMatchObject({
      dispatched: { type: 'denied', code: 'cancelled' },
      steps: ['claim', 'look up'],
    })
  })

  it.each<[EffectState, string]>([
    ['executing', 'pending'],
    ['unknown', 'unknown'],
    ['abandoned', 'unknown'],
    ['done', 'done'],
    ['reconciled_done', 'done'],
    ['failed', 'failed'],
    ['reconciled_failed', 'failed'],
    ['denied', 'denied'],
  ])('sends nothing that somebody has sent already, or settled: %s', async (state, type) => {
    for (const scene of [{ claimed: false }, { stillMine: false }]) {
      const { dispatched, steps } = await dispatch({ state, ...scene })
      expect(dispatched.type).toBe(type)
      expect(steps).not.toContain('send')
    }
  })

  const longest = (timers: Timer[]): void => timers.toSorted((left, right) => right.milliseconds - left.milliseconds)[0]?.callback()
  const shortest = (timers: Timer[]): void => timers.toSorted((left, right) => left.milliseconds - right.milliseconds)[0]?.callback()

  it.each([
    ['lasting', { type: 'unknown', code: 'no_answer_in_time' }],
    ['none', { type: 'failed', code: 'no_answer_in_time', observation: null }],
  ] as const)('waits no longer than its limit for a target that never answers: %s', async (consequence, outcome) => {
    const { dispatched, steps, signals, timers } = await dispatch({ outcome: never, consequence, meanwhile: longest })
    expect(dispatched).toEqual(outcome)
    expect(steps.at(-1)).toBe('send')
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    expect(timers).toEqual([])
  })

  it('waits a moment only for a target that was told to stop and does not', async () => {
    const stop = new AbortController()
    const { dispatched, timers } = await dispatch({
      outcome: never,
      signal: stop.signal,
      meanwhile: (waiting) => {
        expect(waiting).toHaveLength(1)
        stop.abort()
        expect(waiting).toHaveLength(2)
        shortest(waiting)
      },
    })
    expect(dispatched).toEqual({ type: 'unknown', code: 'no_answer_in_time' })
    expect(timers).toEqual([])
  })

  it('takes a look-up that never ends for one that is not to be had', async () => {
    const { dispatched, steps, broker, target } = await dispatch({ known: never, meanwhile: longest })
    expect(dispatched).toEqual({ type: 'pending', code: 'look_up_unavailable' })
    expect(steps).toEqual(['claim', 'look up', 'release 7'])
    expect(await broker.readBack({ target, call })).toBeNull()
  })

  it('leaves no timer behind an answer', async () => {
    expect((await dispatch({ known: { type: 'absent' } })).timers).toEqual([])
    expect((await dispatch({ outcome: new Error('broken') })).timers).toEqual([])
  })

  it('takes a fault of the sending side for an unknown outcome, and tells of it', async () => {
    const broken = new Error('broken')
    const { dispatched, reported } = await dispatch({ outcome: broken })
    expect(dispatched).toEqual({ type: 'unknown', code: 'executor_failed' })
    expect(reported).toEqual([broken])
  })

  it('takes the target’s proof for what became of it, and absence for none', async () => {
    const readBack = async (known: Scene['known']) => {
      const { broker, target, steps } = await dispatch({ known, claimed: false })
      const proof = await broker.readBack({ target, call })
      expect(steps).not.toContain('send')
      return proof
    }
    expect(await readBack({ type: 'committed', argumentsHash: call.argumentsHash, observation })).toEqual({ observation })
    expect(await readBack({ type: 'committed', argumentsHash: null, observation: null })).toEqual({ observation: null })
    for (const known of [
      null,
      { type: 'absent' } as const,
      { type: 'unavailable' } as const,
      { type: 'committed', argumentsHash: 'c'.repeat(64), observation } as const,
      new Error('deaf'),
    ])
      expect(await readBack(known)).toBeNull()
  })
})
