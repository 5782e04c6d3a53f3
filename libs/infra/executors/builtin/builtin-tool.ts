import type { z } from 'zod'
import type { CapabilityClass, Consequence, Trust } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EffectCall, EffectOutcome, EffectTarget, LookUp, Observation, ToolContract } from '#kernel/ports/effect-target'
import type { JsonValue } from '#kernel/ports/model-gateway'
import { constraintsOf, contractOf, parametersOf } from '../contract.ts'
import { failed, observe } from '../observation.ts'

/** A tool that is part of Lingtai: both its sides. */
export type BuiltinTool = { contract: ToolContract; target: EffectTarget }

/** A call with its arguments read. */
export type ReadCall<Arguments> = Omit<EffectCall, 'arguments'> & { arguments: Arguments }

export type BuiltinParts<Schema extends z.ZodObject> = {
  name: string
  description: string
  arguments: Schema
  /** read_only, none and false where left out. Nothing built in reaches the network. */
  capability?: CapabilityClass
  consequence?: Consequence
  undoable?: boolean
  /** The argument that names what a call gives away; a built-in tool without one is free. */
  priceArgument?: string
  act(call: ReadCall<z.output<Schema>>): Promise<EffectOutcome>
  /** What became of a key; left out where no record of keys is kept. */
  lookUp?(call: Omit<EffectCall, 'signal'>): Promise<LookUp>
}

/** Joins what a built-in tool says and does. Arguments that do not fit its schema are refused before anything is done. */
export function builtinTool<Schema extends z.ZodObject>(parts: BuiltinParts<Schema>): BuiltinTool {
  const contract = contractOf({
    name: parts.name,
    description: parts.description,
    parameters: parametersOf(parts.arguments),
    capability: parts.capability ?? 'read_only',
    consequence: parts.consequence ?? 'none',
    egress: 'none',
    undoable: parts.undoable ?? false,
    ...(parts.priceArgument === undefined ? { priceMicros: 0 } : { priceMicros: null, priceArgument: parts.priceArgument }),
  })
  return {
    contract,
    target: {
      enforces: constraintsOf,
      lookUp: async (call) => (parts.lookUp ? parts.lookUp(call) : null),
      execute: async (call) => {
        if (call.signal.aborted) return failed('aborted')
        const read = parts.arguments.safeParse(call.arguments)
        return read.success ? parts.act({ ...call, arguments: read.data }) : failed('arguments_invalid')
      },
    },
  }
}

/** The answer of a built-in tool, as JSON. `derivedFrom`: the contents that it was read from. */
export function jsonObservation(parts: {
  tool: string
  value: JsonValue
  clock: Clock
  trust: Trust
  derivedFrom?: readonly string[]
}): Observation {
  return {
    ...observe({
      text: JSON.stringify(parts.value),
      mediaType: 'application/json',
      source: parts.tool,
      at: parts.clock.now(),
      trust: parts.trust,
    }),
    ...(parts.derivedFrom === undefined ? {} : { derivedFrom: parts.derivedFrom }),
  }
}

export function done(observation: Observation): EffectOutcome {
  return { type: 'done', observation, costMicros: 0 }
}
