import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openInstance, portTiers } from '../support/port-tier.ts'
import type { Instance, Wakeups } from '../support/port-tier.ts'
import { eventually } from '../support/story.ts'

describe.each(portTiers)('Fanout on the %s tier', (name) => {
  let instance: Instance
  let here: Wakeups
  let there: Wakeups
  beforeAll(async () => {
    instance = openInstance(name)
    here = await instance.process()
    there = await instance.process()
  })
  afterAll(() => instance.close())

  /** What a subscriber heard; a last message on the channel tells that all before it have come. */
  async function listen(wakeups: Wakeups, channel: string) {
    const heard: string[] = []
    const unsubscribe = await wakeups.fanout.subscribe(channel, (message) => heard.push(message))
    const until = (message: string) => eventually(() => Promise.resolve(heard.includes(message)), `the message ${message} on ${channel}`)
    return { heard, unsubscribe, until }
  }

  it('brings what is published after a subscription stands to it, in order, whoever publishes and in whichever process', async () => {
    const channel = `run.${randomUUID()}`
    const listeners = [await listen(here, channel), await listen(there, channel), await listen(there, channel)]
    const messages = Array.from({ length: 200 }, (_, index) => `灵台 ${index} 😀\n`)
    for (const message of messages) here.fanout.publish(channel, message)
    for (const listener of listeners) {
      await listener.until(messages.at(-1) ?? '')
      expect(listener.heard).toEqual(messages)
    }
    there.fanout.publish(channel, 'back')
    for (const listener of listeners) await listener.until('back')
  })

  it('stands for the second subscriber of a channel too, before the first one is told', async () => {
    const channel = `run.${randomUUID()}`
    const [, second] = [listen(here, channel), await listen(here, channel)]
    there.fanout.publish(channel, 'once')
    await second.until('once')
  })

  it('keeps channels apart', async () => {
    const [first, second] = [`run.${randomUUID()}`, `run.${randomUUID()}`]
    const listener = await listen(here, first)
    there.fanout.publish(second, 'elsewhere')
    there.fanout.publish(`${first}0`, 'longer name')
    there.fanout.publish(first, 'here')
    await listener.until('here')
    expect(listener.heard).toEqual(['here'])
  })

  it('calls no handler before publish has returned', async () => {
    const channel = `run.${randomUUID()}`
    const listener = await listen(here, channel)
    here.fanout.publish(channel, 'later')
    expect(listener.heard).toEqual([])
    await listener.until('later')
  })

  it('brings nothing to whoever has left, and all to whoever stays or comes back', async () => {
    const channel = `run.${randomUUID()}`
    const [left, stays] = [await listen(here, channel), await listen(here, channel)]
    left.unsubscribe()
    there.fanout.publish(channel, 'one')
    await stays.until('one')
    stays.unsubscribe()
    left.unsubscribe()
    const again = await listen(here, channel)
    there.fanout.publish(channel, 'two')
    await again.until('two')
    expect([left.heard, stays.heard, again.heard]).toEqual([[], ['one'], ['two']])
  })

  it('publishes to nobody without complaint', () => {
    here.fanout.publish(`run.${randomUUID()}`, 'to the wind')
    expect(here.reports).toEqual([])
  })
})
