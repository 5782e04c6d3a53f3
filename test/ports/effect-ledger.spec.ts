/** The ledger of effects, questions to owners and grants, as the database keeps them on both tiers (K2, K3; cases E4, E5, E6, E10, E16). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EffectConflictError } from '#kernel/ports/effect-ledger'
import type { NewEffect } from '#kernel/ports/effect-ledger'
import { nextEffectState } from '#kernel/effects/effect'
import type { EffectEvent, EffectState } from '#kernel/effects/effect'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier, Stores } from '../support/port-tier.ts'

const settlement = { code: null, outcomeContentId: null, costMicros: null }

describe.each(portTiers)('the effect ledger on the %s tier', (name) => {
  let tier: PortTier
  let owner: { ownerId: string; characterId: string }
  let runId: string
  let contentId: string
  beforeAll(async () => {
    tier = await openPortTier(name)
    owner = await tier.character()
    runId = tier.ids.next()
    await tier.database.run(() =>
      tier.runs.insert({
        id: runId,
        owner_id: owner.ownerId,
        kind: 'maintenance',
        seated: false,
        character_id: owner.characterId,
        tree_id: null,
        question_id: null,
        candidate_id: null,
        trace_id: tier.ids.next(),
        settings: { seed: 1 },
        queueExpiresAt: null,
      }),
    )
    contentId = (await tier.contents.put({ owner_id: owner.ownerId, media_type: 'application/json', content: '{}' })).id
  })
  afterAll(() => tier.close())

  const newEffect = (changes: Partial<NewEffect> = {}): NewEffect => ({
    id: tier.ids.next(),
    owner_id: owner.ownerId,
    character_id: owner.characterId,
    run_id: runId,
    action_id: tier.ids.next(),
    tool: 'mail.send',
    tool_version: 'c'.repeat(64),
    capability: 'irreversible_external',
    consequence: 'lasting',
    constraints: ['exact_arguments'],
    resource: 'mail',
    idempotency_key: tier.ids.next(),
    arguments_content_id: contentId,
    arguments_hash: 'a'.repeat(64),
    reserved_micros: 5,
    ...changes,
  })

  it('binds a key once: the same action gets its row back, anything else is a conflict', async () => {
    const effect = newEffect()
    const first = await tier.effects.bind(effect)
    expect(first).toMatchObject({ id: effect.id, state: 'intent', constraints: ['exact_arguments'], reserved_micros: 5 })
    expect((await tier.effects.bind({ ...effect, id: tier.ids.next() })).id).toBe(effect.id)
    const others: Partial<NewEffect>[] = [
      { arguments_hash: 'b'.repeat(64) },
      { action_id: tier.ids.next() },
      { tool: 'mail.draft' },
      { tool_version: 'd'.repeat(64) },
      { capability: 'read_only' },
    ]
    for (const other of others) await expect(tier.effects.bind({ ...effect, ...other })).rejects.toThrow(EffectConflictError)
    const [count] = await tier.database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM effects WHERE owner_id = $1::uuid AND idempotency_key = $2',
      [effect.owner_id, effect.idempotency_key],
    )
    expect(count?.count).toBe(1)
  })

  it('gives another owner the same key', async () => {
    const effect = newEffect()
    await tier.effects.bind(effect)
    const stranger = await tier.character()
    const [foreign] = await tier.database.query<{ id: string }>('SELECT id FROM effects WHERE owner_id = $1::uuid', [stranger.ownerId])
    expect(foreign).toBeUndefined()
    expect(await tier.effects.find(stranger.ownerId, effect.id)).toBeNull()
  })

  it('leaves one effect of twelve submissions at once, and one claim of twelve', async () => {
    const effect = newEffect()
    const replicas: Stores[] = [tier, tier.replica(), tier.replica()]
    const bound = await Promise.all(
      Array.from({ length: 12 }, (_, index) => (replicas[index % 3] ?? tier).effects.bind({ ...effect, id: tier.ids.next() })),
    )
    const ids = new Set(bound.map((row) => row.id))
    expect(ids.size).toBe(1)
    const id = bound[0]?.id ?? ''
    const claims = await Promise.all(Array.from({ length: 12 }, (_, index) => (replicas[index % 3] ?? tier).effects.claim(id, `p${index}`)))
    expect(claims.filter((claim) => claim !== null)).toHaveLength(1)
  })

  it('lets only the newest claim send', async () => {
    const effect = newEffect()
    await tier.effects.bind(effect)
    const old = await tier.effects.claim(effect.id, 'one')
    await tier.database.execute(`UPDATE effects SET claim_until = clock_timestamp() - interval '1 second' WHERE id = $1::uuid`, [effect.id])
    const fresh = await tier.effects.claim(effect.id, 'two')
    expect(fresh?.fence).toBeGreaterThan(old?.fence ?? 0)
    expect(await tier.effects.markExecuting(effect.id, old?.fence ?? 0)).toBe(false)
    expect(await tier.effects.markExecuting(effect.id, fresh?.fence ?? 0)).toBe(true)
    expect(await tier.effects.markExecuting(effect.id, fresh?.fence ?? 0)).toBe(false)
    expect(await tier.effects.claim(effect.id, 'three')).toBeNull()
  })

  it('gives a claim that stands to whoever knows that its holder is gone: that one alone can send', async () => {
    const effect = newEffect()
    await tier.effects.bind(effect)
    const old = await tier.effects.claim(effect.id, 'one')
    expect(await tier.effects.claim(effect.id, 'two')).toBeNull()
    const fresh = await tier.effects.claim(effect.id, 'two', { takesOver: true })
    expect(fresh?.fence).toBeGreaterThan(old?.fence ?? 0)
    expect(await tier.effects.markExecuting(effect.id, old?.fence ?? 0)).toBe(false)
    expect(await tier.effects.markExecuting(effect.id, fresh?.fence ?? 0)).toBe(true)
    // What was sent is nobody's to send again.
    expect(await tier.effects.claim(effect.id, 'three', { takesOver: true })).toBeNull()
  })

  it('follows the state machine and nothing else, whoever writes', async () => {
    const states: EffectState[] = [
      'intent',
      'executing',
      'done',
      'failed',
      'denied',
      'unknown',
      'reconciled_done',
      'reconciled_failed',
      'abandoned',
    ]
    const events: Exclude<EffectEvent, 'claimed'>[] = ['done', 'failed', 'unknown', 'denied', 'proved_done', 'proved_failed', 'abandoned']
    const ways: Record<EffectState, (Exclude<EffectEvent, 'claimed'> | 'send')[]> = {
      intent: [],
      executing: ['send'],
      done: ['send', 'done'],
      failed: ['send', 'failed'],
      denied: ['denied'],
      unknown: ['send', 'unknown'],
      reconciled_done: ['send', 'unknown', 'proved_done'],
      reconciled_failed: ['send', 'unknown', 'proved_failed'],
      abandoned: ['send', 'unknown', 'abandoned'],
    }
    for (const state of states) {
      for (const event of events) {
        const effect = newEffect()
        await tier.effects.bind(effect)
        for (const step of ways[state]) {
          if (step === 'send') {
            const claim = await tier.effects.claim(effect.id, 'one')
            await tier.effects.markExecuting(effect.id, claim?.fence ?? 0)
          } else await tier.effects.settle(effect.id, step, settlement)
        }
        const next = nextEffectState(state, event)
        expect(await tier.effects.settle(effect.id, event, settlement), `${state} + ${event}`).toBe(next !== null)
        expect((await tier.effects.get(effect.id))?.state).toBe(next ?? state)
      }
      for (const wanted of states) {
        const effect = newEffect()
        await tier.effects.bind(effect)
        for (const step of ways[state]) {
          if (step === 'send') {
            const claim = await tier.effects.claim(effect.id, 'one')
            await tier.effects.markExecuting(effect.id, claim?.fence ?? 0)
          } else await tier.effects.settle(effect.id, step, settlement)
        }
        const isLawful =
          wanted === state ||
          (['done', 'failed', 'unknown', 'denied', 'proved_done', 'proved_failed', 'abandoned', 'claimed'] as const).some(
            (event) => nextEffectState(state, event) === wanted,
          )
        const attempt = tier.database.execute(
          `UPDATE effects SET state = $2, claim_holder = coalesce(claim_holder, 'x'), dispatched_at = coalesce(dispatched_at, now()) WHERE id = $1::uuid`,
          [effect.id, wanted],
        )
        if (isLawful) await attempt
        else await expect(attempt, `${state} to ${wanted}`).rejects.toThrow(/cannot go from/)
      }
    }
  })

  it('keeps what an effect was bound to, and every row', async () => {
    const effect = newEffect()
    await tier.effects.bind(effect)
    for (const change of [
      `arguments_hash = repeat('b', 64)`,
      `tool = 'other'`,
      `capability = 'read_only'`,
      'reserved_micros = 0',
      `idempotency_key = 'x'`,
    ]) {
      await expect(tier.database.execute(`UPDATE effects SET ${change} WHERE id = $1::uuid`, [effect.id])).rejects.toThrow(/is fixed/)
    }
    await expect(tier.database.execute('DELETE FROM effects WHERE id = $1::uuid', [effect.id])).rejects.toThrow(/cannot be deleted/)
    await expect(
      tier.database.execute(
        `INSERT INTO effects (id, owner_id, character_id, run_id, action_id, tool, capability, consequence, constraints, resource, idempotency_key,
           arguments_content_id, arguments_hash, state)
         VALUES (gen_random_uuid(), $1::uuid, $2::uuid, $3::uuid, gen_random_uuid(), 't', 'read_only', 'none', '{}', 'r', 'k', $4::uuid, repeat('a', 64), 'done')`,
        [owner.ownerId, owner.characterId, runId, contentId],
      ),
    ).rejects.toThrow(/begins as an intent/)
  })

  it('sends nothing that is bound to no version of its tool', async () => {
    const effect = await tier.effects.bind(newEffect({ tool_version: null }))
    const claim = await tier.effects.claim(effect.id, 'test')
    await expect(tier.effects.markExecuting(effect.id, claim?.fence ?? 0)).rejects.toThrow(/bound to no version/)
    expect(await tier.effects.get(effect.id)).toMatchObject({ state: 'intent', tool_version: null })
    expect(await tier.effects.settle(effect.id, 'denied', settlement)).toBe(true)
  })

  it('asks, is answered once, and lets a yes serve once', async () => {
    const id = tier.ids.next()
    const at = new Date()
    await tier.approvals.ask({
      id,
      owner_id: owner.ownerId,
      character_id: owner.characterId,
      run_id: runId,
      action_id: tier.ids.next(),
      tool: 'mail.send',
      tool_version: '1',
      capability: 'irreversible_external',
      reason: 'class_asks',
      arguments_content_id: contentId,
      arguments_hash: 'a'.repeat(64),
      profile_hash: 'b'.repeat(64),
      policy_version: 1,
      expires_at: new Date(at.getTime() + 60_000),
    })
    expect((await tier.approvals.list(owner.ownerId, { state: 'pending', before: null, limit: 10 })).map((row) => row.id)).toContain(id)
    const stranger = await tier.character()
    expect(await tier.approvals.find(stranger.ownerId, id)).toBeNull()
    await expect(tier.approvals.move(id, { from: 'pending', to: 'approved', by: stranger.ownerId, at })).rejects.toThrow(/owner_approves/)
    expect(await tier.approvals.move(id, { from: 'pending', to: 'approved', by: owner.ownerId, at })).toBe(true)
    expect(await tier.approvals.move(id, { from: 'pending', to: 'refused', by: owner.ownerId, at })).toBe(false)
    expect(await tier.approvals.move(id, { from: 'approved', to: 'used', by: null, at })).toBe(true)
    expect(await tier.approvals.move(id, { from: 'approved', to: 'used', by: null, at })).toBe(false)
    for (const change of [`state = 'approved'`, `state = 'pending'`]) {
      await expect(tier.database.execute(`UPDATE approvals SET ${change} WHERE id = $1::uuid`, [id])).rejects.toThrow(
        /cannot go from|check/i,
      )
    }
    await expect(tier.database.execute(`UPDATE approvals SET arguments_hash = repeat('c', 64) WHERE id = $1::uuid`, [id])).rejects.toThrow(
      /is fixed/,
    )
    await expect(tier.database.execute('DELETE FROM approvals WHERE id = $1::uuid', [id])).rejects.toThrow(/cannot be deleted/)
  })

  it('keeps grants by version, set by nobody but their owner', async () => {
    const grant = {
      owner_id: owner.ownerId,
      scope: 'character' as const,
      scope_id: owner.characterId,
      mode: 'default' as const,
      classes: ['read_only' as const],
      tools: ['clock'],
      exact: null,
      class_rules: [{ capability: 'code_executing' as const, verdict: 'forbidden' as const }],
      max_cost_micros: null,
      set_by: owner.ownerId,
      set_at: new Date(),
    }
    expect(await tier.grants.set(grant, 3)).toBeNull()
    expect(await tier.grants.set(grant, 0)).toMatchObject({ version: 1, tools: ['clock'], exact: null, class_rules: grant.class_rules })
    expect(await tier.grants.set(grant, 0)).toBeNull()
    const [one, two] = await Promise.all([
      tier.grants.set({ ...grant, tools: [] }, 1),
      tier.replica().grants.set({ ...grant, tools: null }, 1),
    ])
    expect([one, two].filter((row) => row !== null)).toHaveLength(1)
    const layers = await tier.grants.layers({ ownerId: owner.ownerId, characterId: owner.characterId, treeId: null })
    expect(layers.map(({ scope, version }) => ({ scope, version }))).toEqual([{ scope: 'character', version: 2 }])
    const stranger = await tier.character()
    await expect(tier.grants.set({ ...grant, set_by: stranger.ownerId }, 2)).rejects.toThrow(/owner_grants/)
  })
})
