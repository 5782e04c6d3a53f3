import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { abi, ArtifactRef, ContextGrant, ContextRequest, EffectProposal, pivotSlots, Slot, TaskEnvelope, ToolIntent } from './abi.ts'
import { PROTOCOL_VERSION } from './events.ts'

const id = '01935f00-0000-7000-8000-000000000001'
const artifact = { content_id: id, digest: 'a'.repeat(64), media_type: 'application/json', bytes: 12 }
const budget = { max_turns: 8, max_wall_ms: 60_000, max_cost_micros: null, max_tokens: null, max_consecutive_tool_errors: 3 }
const task = {
  task_id: id,
  protocol_version: PROTOCOL_VERSION,
  input: [artifact],
  trust: 'trusted',
  acceptance: null,
  budget,
  ceiling: ['read_only', 'reversible_local'],
}
const request = {
  request_id: id,
  slot: 'lingtai/hetu',
  selectors: [{ source: 'memory', ids: [id], limit: 10 }],
  max_bytes: 4096,
  trust_ceiling: 'workspace',
}
const grant = { request_id: id, segments: [{ source: 'memory', content: artifact, trust: 'workspace' }], bytes: 12 }
const intent = {
  proposed_by: 'lingtai/baigong',
  call: { tool: 'clock', arguments: artifact },
  purity: 'effecting',
  admitted: 'none',
  argument_trust: 'untrusted',
}
const proposal = {
  id,
  tool_use_id: id,
  tool: 'clock',
  admitted: ['read_only'],
  arguments: artifact,
  workspace: { owner_id: id, character_id: id, run_id: id, tree_id: null },
}

/** The frozen form. Changing it is another protocol version, with a snapshot of its own; it is never brought up to date. */
const snapshot: unknown = JSON.parse(readFileSync(join(import.meta.dirname, 'abi.snapshot.json'), 'utf8'))

describe('the ABI', () => {
  it('is what was frozen', () => {
    const contracts = Object.fromEntries(Object.entries(abi).map(([name, schema]) => [name, z.toJSONSchema(schema)]))
    expect({ protocol_version: PROTOCOL_VERSION, contracts }).toEqual(snapshot)
  })

  it('has one version of the protocol, compiled in', () => {
    expect(PROTOCOL_VERSION).toBe(1)
  })

  it.each<[string, z.ZodType, Record<string, unknown>]>([
    ['TaskEnvelope', TaskEnvelope, task],
    ['ContextRequest', ContextRequest, request],
    ['ContextGrant', ContextGrant, grant],
    ['ToolIntent', ToolIntent, intent],
    ['EffectProposal', EffectProposal, proposal],
    ['ArtifactRef', ArtifactRef, artifact],
  ])('%s has these fields, all of them, and no other', (_, schema, lawful) => {
    expect(schema.parse(lawful)).toEqual(lawful)
    for (const field of Object.keys(lawful)) {
      expect(schema.safeParse(Object.fromEntries(Object.entries(lawful).filter(([name]) => name !== field))).success, field).toBe(false)
    }
    for (const extra of ['grant', 'token', 'path', 'admin'])
      expect(schema.safeParse({ ...lawful, [extra]: 'x' }).success, extra).toBe(false)
  })

  it('takes a set for a set: what was admitted has no member twice and one order', () => {
    const admits = (admitted: unknown) => EffectProposal.safeParse({ ...proposal, admitted }).success
    expect(admits(['read_only', 'irreversible_external'])).toBe(true)
    for (const no of [[], ['read_only', 'read_only'], ['irreversible_external', 'read_only'], 'read_only', ['root']])
      expect(admits(no)).toBe(false)
  })

  it('lets nobody who proposes say what was admitted', () => {
    for (const admitted of [['read_only'], [], 'all', null, true]) expect(ToolIntent.safeParse({ ...intent, admitted }).success).toBe(false)
  })

  it('takes any slot of a domain and a role, the nine pivots’ among them', () => {
    expect(pivotSlots).toHaveLength(9)
    for (const slot of [...pivotSlots, 'db/query_planner']) expect(Slot.safeParse(slot).success, slot).toBe(true)
    for (const slot of ['lingtai', 'lingtai/', '/siming', 'a/b/c', 'Lingtai/Siming', '../etc'])
      expect(Slot.safeParse(slot).success).toBe(false)
  })
})
