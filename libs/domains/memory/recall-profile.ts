import { HALF_LIFE_DAYS } from './vitality.ts'

/** How the two legs are read and fused. Measured per embedder, see docs/benchmarks/memory.md. */
export type RecallProfile = {
  /** The constant of reciprocal rank fusion. */
  rankConstant: number
  textWeight: number
  vectorWeight: number
  /** How many candidates each leg gives. */
  depth: number
  /** Vectors that say less than this cosine do not enter their leg. */
  vectorFloor: number
  /** Scopes of up to so many memories are scanned exactly; larger ones use the index. */
  exactUpTo: number
  halfLifeDays: number
}

const standard: RecallProfile = {
  rankConstant: 60,
  textWeight: 1,
  vectorWeight: 1,
  depth: 40,
  vectorFloor: 0,
  exactUpTo: 1_000,
  halfLifeDays: HALF_LIFE_DAYS,
}

/** By model, as named in its space. The offline embedder knows spelling alone: a weak leg harms a fusion of equals, and its low cosines are chance. */
const measured: Readonly<Record<string, Partial<RecallProfile>>> = {
  lexical: { vectorWeight: 0.05, vectorFloor: 0.08 },
}

/** The profile for an embedder's model; equal weights for one that nobody measured here. */
export function recallProfile(model: string): RecallProfile {
  return { ...standard, ...measured[model] }
}
