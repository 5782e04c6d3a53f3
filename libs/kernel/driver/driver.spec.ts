import { describe, expect, it } from 'vitest'
import type { EventType } from '#contracts'
import type { RunAction } from '../reducer/actions.ts'
import type { RunCommand } from '../reducer/commands.ts'
import { reduce } from '../reducer/reduce.ts'
import { initialState } from '../reducer/state.ts'
import { digest, id, projected, start } from '../reducer/test-commands.ts'
import { RunDriver, SubmissionRefusedError } from './driver.ts'
import type { Performed, RunEffects } from './driver.ts'

const steer = (n: number): RunCommand => ({ tag: 'steer', command_id: id(100 + n), content_id: id(200 + n), digest })
const cancel: RunCommand = { tag: 'cancel', settled_tokens: 0 }

/** An outside that notes what it is asked for. `answers`: what becomes of each record, in order; done where nothing is said. */
function outside(answers: readonly Performed[] = []) {
  const asked: RunAction['type'][] = []
  const left = [...answers]
  const note = (type: RunAction['type']) => (): void => {
    asked.push(type)
  }
  const write = (type: RunAction['type']) => async (): Promise<Performed> => {
    asked.push(type)
    return left.shift() ?? 'done'
  }
  const effects: RunEffects = {
    record: write('record'),
    suspend: write('suspend'),
    seal: write('seal'),
    projectContext: note('project_context'),
    requestModel: note('request_model'),
    abortModel: note('abort_model'),
    waitRetry: note('wait_retry'),
    assessCall: note('assess_call'),
    dispatchEffect: note('dispatch_effect'),
    reconcileEffect: note('reconcile_effect'),
    abortEffect: note('abort_effect'),
    acceptAnswer: note('accept_answer'),
  }
  return { asked, effects }
}

describe('RunDriver (K9)', () => {
  it('hands back what does not fit its queue, and takes the rest', async () => {
    const { effects } = outside()
    const driver = new RunDriver({ state: initialState(null), effects, capacity: 2 })
    expect([start, steer(1), steer(2)].map((command) => driver.submit(command))).toEqual([true, true, false])
    const done = driver.run()
    await expect.poll(() => driver.state.steers.map((one) => one.command_id)).toEqual([id(101)])
    expect(driver.submit(cancel)).toBe(true)
    expect(await done).toBe('sealed')
  })

  it('ends with the fault of whoever cannot go on, and takes no command after it', async () => {
    const { asked, effects } = outside()
    const driver = new RunDriver({ state: initialState(null), effects, capacity: 2 })
    driver.submit(start)
    driver.submit(steer(1))
    driver.breakOff(new SubmissionRefusedError('model_finished'))
    await expect(driver.run()).rejects.toThrow('model_finished was refused')
    expect(asked).toEqual([])
  })

  it('does what was asked, in order, one command after another, and nothing else', async () => {
    const { asked, effects } = outside()
    const driver = new RunDriver({ state: initialState(null), effects })
    const commands = [start, steer(1), projected, cancel]
    for (const command of commands) driver.submit(command)
    expect(await driver.run()).toBe('sealed')
    let state = initialState(null)
    const meant = commands.flatMap((command) => {
      const step = reduce(state, command)
      state = step.state
      return step.actions.map(({ type }) => type)
    })
    expect(asked).toEqual(meant)
    expect(driver.state).toEqual(state)
  })

  it('asks for nothing of what could not be recorded: neither what follows nor the state stays (K3)', async () => {
    const { asked, effects } = outside(['done', 'refused'])
    const driver = new RunDriver({ state: initialState(null), effects })
    for (const command of [start, projected]) driver.submit(command)
    const done = driver.run()
    await expect.poll(() => asked).toEqual(['record', 'project_context', 'record'])
    expect(driver.state).toMatchObject({ phase: 'projecting', effect: null })
    driver.submit(cancel)
    expect(await done).toBe('sealed')
    expect(asked).not.toContain('request_model')
  })

  it('goes on to the end where a waiting run may not resume: it is not left as if it waited still (K8)', async () => {
    const { asked, effects } = outside(['refused'])
    const waiting = {
      ...initialState(null),
      phase: 'suspended',
      waits_for: { reason: 'waiting_for_effect', checkpoint_id: id(1) },
    } as const
    const driver = new RunDriver({ state: waiting, effects })
    for (const command of [
      { tag: 'resume', fence: 2 },
      { tag: 'fail', code: 'killed' },
    ] as const)
      driver.submit(command)
    expect(await driver.run()).toBe('sealed')
    expect(asked).toEqual(['record', 'abort_model', 'seal'])
  })

  it('writes nothing more once the run is somebody else’s', async () => {
    const { asked, effects } = outside(['done', 'fenced'])
    const driver = new RunDriver({ state: initialState(null), effects })
    for (const command of [start, projected, cancel]) driver.submit(command)
    expect(await driver.run()).toBe('fenced')
    expect(asked).toEqual(['record', 'project_context', 'record', 'abort_model', 'abort_effect'])
    const waiting = outside()
    const other = new RunDriver({ state: initialState(null), effects: waiting.effects })
    const stopped = other.run()
    other.fence()
    expect(await stopped).toBe('fenced')
    expect(waiting.asked).toEqual(['abort_model', 'abort_effect'])
  })

  it('drops an unknown command whole: a closed notice stands in its place, and the run goes on', async () => {
    const { effects } = outside()
    const written: { tag: string; types: EventType[] }[] = []
    const recording: RunEffects = {
      ...effects,
      record: async (action, command) => {
        written.push({ tag: JSON.stringify(command), types: action.events.map(({ type }) => type) })
        return 'done'
      },
    }
    const driver = new RunDriver({ state: initialState(null), effects: recording })
    for (const tag of ['launch', '__proto__', 'toString', '']) {
      expect(driver.submit({ tag, secret: 'do as I say' } as unknown as RunCommand)).toBe(true)
    }
    driver.submit(start)
    driver.submit(cancel)
    expect(await driver.run()).toBe('sealed')
    expect(written.slice(0, 4)).toEqual(Array.from({ length: 4 }, () => ({ tag: '{"tag":"unknown"}', types: ['command.dropped'] })))
    expect(written[4]?.types).toEqual(['run.started', 'turn.started'])
    expect(JSON.stringify([written, driver.state])).not.toContain('as I say')
  })

  it('takes up no more actions of one turn than are allowed', async () => {
    const { effects } = outside()
    const driver = new RunDriver({ state: initialState(null), effects })
    const calls = Array.from({ length: 40 }, (_, n) => ({
      action_id: id(300 + n),
      tool: 'look.up',
      tool_version: digest,
      content_id: id(400 + n),
      digest,
    }))
    const usage = { prompt_tokens: 1, completion_tokens: 1, estimated: false }
    for (const command of [
      start,
      projected,
      { tag: 'model_finished', finish_reason: 'tool_calls', usage, cost_micros: 0, calls } satisfies RunCommand,
    ])
      driver.submit(command)
    const done = driver.run()
    await expect.poll(() => driver.state.phase).toBe('acting')
    expect(driver.state.calls).toHaveLength(16)
    driver.submit(cancel)
    await done
  })
})
