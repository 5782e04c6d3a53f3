import { describe, expect, it } from 'vitest'
import type { RequestPatch } from '#contracts'
import { bench, hangs, sampleValues, testPlugin, throws } from '#test/support/plugins'
import { acceptResult, listenToAction } from '../turn/action-guards.ts'
import { RefusedChangeError } from './guards.ts'
import { guardNodes } from './nodes.ts'
import type { Plugin } from './plugin.ts'
import { PluginRefusedError } from './plugin-host.ts'

const patch: RequestPatch = { version: 1, reference: null, ops: [{ op: 'remove', at: 0 }] }
const everywhere = (listener: () => never | Promise<never> | { veto: string } | null) => ({
  'llm.pre_request': listener,
  'tool.pre_execute': listener,
  'result.pre_accept': listener,
})

describe('registration', () => {
  it('takes each name once, and names and versions that are slugs', () => {
    const one = testPlugin('test/one', {})
    expect(() => bench([one, testPlugin('test/one', {})])).toThrow(PluginRefusedError)
    expect(() => bench([testPlugin('no slug', {})])).toThrow(PluginRefusedError)
    expect(() => bench([testPlugin('test/one', {}, 'no slug')])).toThrow(PluginRefusedError)
    expect(bench([one, testPlugin('test/two', {}, '2')]).host.listed).toEqual([
      { name: 'test/one', version: '1.0.0' },
      { name: 'test/two', version: '2' },
    ])
  })

  it('is over when it is over, and knows the nodes that there are', () => {
    let late: (() => void) | undefined
    const holds: Plugin = { name: 'test/holds', version: '1', register: (bus) => void (late = () => bus.on('llm.pre_request', () => null)) }
    const { guards } = bench([holds])
    expect(() => late?.()).toThrow(PluginRefusedError)
    expect(guards.listensOn('llm.pre_request')).toBe(false)
    const elsewhere = {
      name: 'test/elsewhere',
      version: '1',
      register: (bus: { on(node: string, listener: () => null): void }) => bus.on('x', () => null),
    }
    expect(() => bench([elsewhere as unknown as Plugin])).toThrow(PluginRefusedError)
  })

  it('listens only to runs whose bundle lists it', async () => {
    const plugin = testPlugin(
      'test/one',
      everywhere(() => ({ veto: 'no' })),
    )
    const { guards, ask } = bench([plugin], [])
    expect(guards.listensOn('llm.pre_request')).toBe(false)
    expect(await ask('llm.pre_request')).toMatchObject({ taken: [], veto: null })
    expect(plugin.heard).toEqual([])
  })
})

describe('a node', () => {
  it('asks in the order of the bundle, then of registration, each with what the one before made of it', async () => {
    const turns: string[] = []
    const names = (name: string): Plugin => ({
      name,
      version: '1',
      register(bus) {
        for (const which of ['a', 'b']) {
          bus.on('llm.pre_request', ({ turn }) => {
            turns.push(`${name}.${which} ${turn}`)
            return { change: [patch] }
          })
        }
      },
    })
    const two = [names('test/one'), names('test/two')]
    const { ask } = bench(two, [
      { name: 'test/two', version: '1' },
      { name: 'test/one', version: '1' },
    ])
    const passed = await ask('llm.pre_request', { take: (value) => ({ ...value, turn: value.turn + 1 }) })
    expect(turns).toEqual(['test/two.a 1', 'test/two.b 2', 'test/one.a 3', 'test/one.b 4'])
    expect(passed.value.turn).toBe(5)
    expect(passed.taken.map(({ plugin, version }) => `${plugin} ${version}`)).toEqual([
      'test/two 1',
      'test/two 1',
      'test/one 1',
      'test/one 1',
    ])
  })

  it.each(guardNodes)('%s stops at the first no, and keeps what was changed before', async (node) => {
    const changes = testPlugin('test/changes', {
      'llm.pre_request': () => ({ change: [patch] }),
      'tool.pre_execute': () => ({ change: 'ask' }),
      'result.pre_accept': () => null,
    })
    const says = testPlugin(
      'test/says',
      everywhere(() => ({ veto: 'because' })),
    )
    const after = testPlugin(
      'test/after',
      everywhere(() => null),
    )
    const passed = await bench([changes, says, after]).ask(node)
    expect(passed.veto).toEqual({ plugin: 'test/says', reason: 'because' })
    expect(passed.taken.map(({ plugin }) => plugin)).toEqual(node === 'result.pre_accept' ? [] : ['test/changes'])
    expect(after.heard).toEqual([])
  })

  it.each(guardNodes)('%s takes a listener that throws for a no, and tells what broke', async (node) => {
    for (const listener of [throws, async () => throws()]) {
      const { ask, reports } = bench([testPlugin('test/broken', everywhere(listener))])
      expect((await ask(node)).veto).toEqual({ plugin: 'test/broken', reason: 'threw' })
      expect(reports).toMatchObject([{ plugin: 'test/broken', error: { message: 'the plugin broke' } }])
    }
  })

  it.each(guardNodes)('%s takes a listener that does not answer in time for a no', async (node) => {
    const { ask, runOut, scheduler } = bench([testPlugin('test/hangs', everywhere(hangs))])
    const asked = ask(node)
    runOut()
    expect((await asked).veto).toEqual({ plugin: 'test/hangs', reason: 'timed_out' })
    expect(scheduler.waiting).toBe(0)
  })

  it('leaves no timer behind where the answer came in time', async () => {
    const { ask, scheduler } = bench([
      testPlugin(
        'test/quick',
        everywhere(() => null),
      ),
    ])
    expect((await ask('result.pre_accept')).veto).toBeNull()
    expect(scheduler.waiting).toBe(0)
  })

  it.each(guardNodes)('%s takes a plugin that is listed and not here, or here as another version, for a no', async (node) => {
    const here = testPlugin(
      'test/here',
      everywhere(() => null),
    )
    for (const listed of [
      { name: 'test/gone', version: '1' },
      { name: 'test/here', version: '2' },
    ]) {
      const { ask, guards } = bench([here], [listed])
      expect(guards.listensOn(node)).toBe(true)
      expect((await ask(node)).veto).toEqual({ plugin: listed.name, reason: 'plugin_missing' })
    }
    expect(here.heard).toEqual([])
  })

  it.each([['yes'], [7], [{}], [{ veto: 7 }], [{ verdict: 'autonomous' }], [{ change: () => 'code' }]])(
    'takes an answer that nobody understands for a no: %j',
    async (answer) => {
      const passed = await bench([testPlugin('test/odd', everywhere((() => answer) as unknown as () => null))]).ask('result.pre_accept')
      expect(passed.veto).toMatchObject({ plugin: 'test/odd' })
    },
  )

  it('takes a change that does not go with the value for a no, by its reason', async () => {
    const { ask, reports } = bench([testPlugin('test/odd', { 'llm.pre_request': () => ({ change: [patch] }) })])
    const refuses = (error: Error) =>
      ask('llm.pre_request', {
        take: () => {
          throw error
        },
      })
    expect((await refuses(new RefusedChangeError('too_much'))).veto).toEqual({ plugin: 'test/odd', reason: 'too_much' })
    expect(reports).toEqual([])
    expect((await refuses(new TypeError('ours'))).veto).toEqual({ plugin: 'test/odd', reason: 'invalid_change' })
    expect(reports).toHaveLength(1)
  })

  it('shows values that hold nothing to call and cannot be changed, a copy for each', async () => {
    const original = structuredClone(sampleValues['llm.pre_request'])
    const meddles = testPlugin('test/meddles', {
      'llm.pre_request': (value) => {
        // Types say that it is read-only, which binds no plugin.
        Object.assign(value.messages[1] ?? {}, { text: 'changed behind our back' })
        return null
      },
    })
    const looks = testPlugin(
      'test/looks',
      everywhere(() => null),
    )
    const { ask } = bench([looks, meddles])
    const passed = await ask('llm.pre_request', { value: original })
    expect(passed.veto).toEqual({ plugin: 'test/meddles', reason: 'threw' })
    expect(original).toEqual(sampleValues['llm.pre_request'])
    expect(looks.heard[0]?.value).not.toBe(original)
    expect(JSON.parse(JSON.stringify(looks.heard[0]?.value))).toEqual(looks.heard[0]?.value)
  })

  it('keeps what was answered as it was answered', async () => {
    const change = [structuredClone(patch)]
    const first = testPlugin('test/first', { 'llm.pre_request': () => ({ change }) })
    const second = testPlugin('test/second', {
      'llm.pre_request': () => {
        change[0]?.ops.push({ op: 'remove', at: 1 })
        return null
      },
    })
    expect((await bench([first, second]).ask('llm.pre_request')).taken[0]?.change).toEqual([patch])
  })
})

describe('an action', () => {
  const action = sampleValues['tool.pre_execute']
  const judged = (...answers: unknown[]) =>
    listenToAction(
      bench(answers.map((answer, index) => testPlugin(`test/${index}`, { 'tool.pre_execute': () => answer as null }))).guards,
      action,
    )

  it('collects a verdict of each who has one; a no is the strictest, by name', async () => {
    expect(await judged(null, { change: 'ask' }, { change: 'rule_bound' })).toEqual({ listeners: ['ask', 'rule_bound'], veto: null })
    expect(await judged({ change: 'ask' }, { veto: 'never' }, { change: 'autonomous' })).toEqual({
      listeners: ['ask', 'forbidden'],
      veto: { plugin: 'test/1', reason: 'never' },
    })
    expect(await judged({ change: 'yes' })).toEqual({ listeners: ['forbidden'], veto: { plugin: 'test/0', reason: 'not_a_verdict' } })
  })
})

describe('a result', () => {
  it('passes or does not; nobody changes it', async () => {
    const result = sampleValues['result.pre_accept']
    const accept = (answer: unknown) =>
      acceptResult(bench([testPlugin('test/one', { 'result.pre_accept': () => answer as null })]).guards, result)
    expect(await accept(null)).toBeNull()
    expect(await accept({ veto: 'no' })).toEqual({ plugin: 'test/one', reason: 'no' })
    expect(await accept({ change: { ...result, text: 'better' } })).toEqual({ plugin: 'test/one', reason: 'nothing_to_change' })
  })
})
