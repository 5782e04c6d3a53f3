/** A world outside that counts what really happened to it, and can be slow, deaf, forgetful or cut off (cases E1–E22). */
import { createHash } from 'node:crypto'
import type { Constraint } from '#contracts'
import type { EffectCall, EffectOutcome, EffectTarget, LookUp, Observation, ToolCatalogue, ToolContract } from '#kernel/ports/effect-target'

export type FakeTool = {
  contract: ToolContract
  /** How often it truly happened, and with which keys. */
  happened: { key: string; argumentsText: string }[]
  /** What the next calls do; the last one stays. */
  script: ((call: EffectCall) => Promise<EffectOutcome> | EffectOutcome)[]
  lookUp: (call: Omit<EffectCall, 'signal'>) => Promise<LookUp | null> | LookUp | null
}

export type FakeTools = { catalogue: ToolCatalogue; tools: Map<string, FakeTool> }

export const seen = (text: string, changes: Partial<Observation> = {}): Observation => ({
  mediaType: 'text/plain',
  text,
  source: 'fake',
  at: '2026-01-01T00:00:00.000Z',
  licence: null,
  trust: 'workspace',
  truncated: false,
  ...changes,
})

export function fakeContract(name: string, changes: Partial<ToolContract> = {}): ToolContract {
  const description = `The tool ${name}.`
  return {
    name,
    description,
    parameters: { type: 'object', properties: { text: { type: 'string' } }, additionalProperties: false },
    capability: 'read_only',
    consequence: 'none',
    egress: 'none',
    undoable: false,
    priceMicros: 0,
    version: createHash('sha256').update(description).digest('hex'),
    ...changes,
  }
}

/** The target truly does it: once more on the count. */
export function happens(tool: FakeTool, call: Pick<EffectCall, 'idempotencyKey' | 'arguments'>): void {
  tool.happened.push({ key: call.idempotencyKey, argumentsText: JSON.stringify(call.arguments) })
}

/** A step in which it truly happens, once more on the count, and its caller hears of it as told. */
export function happening(tool: FakeTool, outcome: EffectOutcome): FakeTool['script'][number] {
  return (call) => {
    happens(tool, call)
    return outcome
  }
}

export const brought = (text: string): EffectOutcome => ({ type: 'done', observation: seen(text), costMicros: null })

export function fakeTools(...contracts: readonly ToolContract[]): FakeTools {
  const tools = new Map<string, FakeTool>()
  for (const contract of contracts) {
    const tool: FakeTool = { contract, happened: [], script: [], lookUp: () => null }
    tool.script = [happening(tool, brought(`${contract.name} did it`))]
    tools.set(contract.name, tool)
  }
  const enforced: ReadonlySet<Constraint> = new Set(['no_egress', 'undoable', 'exact_arguments', 'single_use'])
  const target = (tool: FakeTool): EffectTarget => ({
    enforces: () => enforced,
    lookUp: async (call) => tool.lookUp(call),
    execute: async (call) => {
      const step = tool.script.length > 1 ? tool.script.shift() : tool.script[0]
      if (!step) throw new Error('nothing is scripted')
      return step(call)
    },
  })
  return {
    tools,
    catalogue: {
      list: async () => [...tools.values()].map(({ contract }) => contract),
      find: async (_, name) => {
        const tool = tools.get(name)
        return tool ? { contract: tool.contract, target: target(tool) } : null
      },
    },
  }
}
