import type { ToolContract } from '../ports/effect-target.ts'
import type { JsonObject } from '../ports/model-gateway.ts'

/**
 * The most that one call can be charged, in micro-units: what its contract says, or, where the contract names an argument for it, what that
 * argument gives away. Null where nobody said, which a bound on cost cannot live with (K6). Pure.
 */
export function priceOfCall(contract: Pick<ToolContract, 'priceMicros' | 'priceArgument'>, given: JsonObject | null): number | null {
  if (contract.priceArgument === undefined) return contract.priceMicros
  const named = given?.[contract.priceArgument]
  if (typeof named !== 'number' || !Number.isSafeInteger(named) || named < 0) return contract.priceMicros
  return Math.max(named, contract.priceMicros ?? 0)
}
