/** What one owner’s broken record holds up is that owner’s alone: sweeps do each row by itself, and the rest first (decision 18, Bounded). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApprovalsService } from '#domains/actions/approvals.service'
import { systemClock } from '#infra/system/clock'
import { MemoryWorld } from '../support/memory-world.ts'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'

describe.each(portTiers)('sweeps beside a broken record on the %s tier', (name) => {
  let tier: PortTier
  beforeAll(async () => {
    tier = await openPortTier(name)
  })
  afterAll(() => tier.close())

  const quarantine = (stream: string, at: string | null = new Date().toISOString()) =>
    tier.database.execute('UPDATE streams SET quarantined_at = $2::timestamptz WHERE stream = $1', [stream, at])

  /** A question whose time is over by `minutes`. */
  async function question(owner: { ownerId: string; characterId: string }, minutes: number): Promise<string> {
    const { ids, runs, contents, approvals, database } = tier
    const [id, runId] = [ids.next(), ids.next()]
    await database.run(() =>
      runs.insert({
        id: runId,
        owner_id: owner.ownerId,
        kind: 'delegated',
        seated: false,
        character_id: owner.characterId,
        tree_id: null,
        question_id: null,
        candidate_id: null,
        trace_id: ids.next(),
        settings: { seed: 1 },
        queueExpiresAt: null,
      }),
    )
    const content = await contents.put({ owner_id: owner.ownerId, media_type: 'application/json', content: '{}' })
    await approvals.ask({
      id,
      owner_id: owner.ownerId,
      character_id: owner.characterId,
      run_id: runId,
      action_id: ids.next(),
      tool: 'mail.send',
      tool_version: 'a'.repeat(64),
      capability: 'irreversible_external',
      reason: 'class_asks',
      arguments_content_id: content.id,
      arguments_hash: 'a'.repeat(64),
      profile_hash: 'b'.repeat(64),
      policy_version: 1,
      expires_at: new Date(Date.now() - minutes * 60_000),
    })
    return id
  }

  it('closes the questions of all others, tells of those that it cannot close, and puts them behind', async () => {
    const [broken, sound] = [await tier.character(), await tier.character()]
    const stuck = [await question(broken, 90), await question(broken, 80)]
    const others = [await question(sound, 70), await question(sound, 60)]
    const stream = `confirmation:${broken.ownerId}`
    await tier.database.run(() =>
      tier.log.append({
        stream,
        ownerId: broken.ownerId,
        events: [
          {
            type: 'grant.changed',
            payload: { scope: 'owner', scope_id: broken.ownerId, version: 1, mode: 'default', by: broken.ownerId },
            actor: 'owner',
            at: new Date().toISOString(),
            cause: { tag: 'set_grant' },
          },
        ],
      }),
    )
    await quarantine(stream)
    const told: string[] = []
    const seen: string[][] = []
    const service = new ApprovalsService({
      ...tier,
      unitOfWork: tier.database,
      approvals: new Proxy(tier.approvals, {
        get: (target, key: keyof typeof tier.approvals) => {
          if (key !== 'due') return target[key].bind(target)
          return async (...given: Parameters<typeof target.due>) => {
            const rows = await target.due(...given)
            seen.push(rows.map(({ id }) => id))
            return rows
          }
        },
      }),
      clock: systemClock,
      wake: () => undefined,
      report: (_, id) => void told.push(id),
    })
    expect(await service.expire()).toBe(2)
    expect(told).toEqual(stuck)
    for (const id of others) expect(await tier.approvals.find(sound.ownerId, id)).toMatchObject({ state: 'expired' })
    for (const id of stuck) expect(await tier.approvals.find(broken.ownerId, id)).toMatchObject({ state: 'pending' })
    // However old they are, what can be closed comes first from now on.
    const late = await question(sound, 1)
    expect(await service.expire()).toBe(1)
    expect(seen).toEqual([
      [...stuck, ...others],
      [late, ...stuck],
    ])
    await quarantine(stream, null)
    expect(await service.expire()).toBe(2)
    expect(await service.expire()).toBe(0)
    expect(seen.at(-1)).toEqual([])
  })

  it('erases the undone memories of all others', async () => {
    const world = new MemoryWorld(tier)
    const slice = await world.slice()
    const people = [await world.person(), await world.person(), await world.person()]
    const undone: string[] = []
    for (const person of people) {
      const [id = ''] = await world.remember(slice, person, ['likes tea'])
      await slice.memories.undo(person.owner_id, id)
      undone.push(id)
    }
    world.clock.advance({ days: 30 })
    // Whoever comes first in the order of the sweep.
    const first = undone.indexOf([...undone].sort()[0] ?? '')
    const stream = `memory:${people[first]?.character_id}`
    await quarantine(stream)
    const left = () => world.count('memory_expiries', 'true', [])
    const before = await left()
    expect(await slice.upkeep.eraseExpired()).toBe(2)
    expect(slice.failed).toEqual([undone[first]])
    expect(await left()).toBe(before - 2)
    await quarantine(stream, null)
    expect(await slice.upkeep.eraseExpired()).toBe(1)
    expect(await left()).toBe(before - 3)
  })
})
