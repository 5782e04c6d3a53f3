/**
 * P6: how much of what is relevant recall finds, by each leg alone and by their fusion, through the statement that serves prompts.
 * Needs LINGTAI_BENCH_DATA; writes docs/benchmarks/memory.json.
 *
 *   --tier full|light    where (light)
 *   --weights 0.1,0.3    vector weights to try (the profile's own)
 *   --no-write           leaves the recorded figures alone
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { queryTexts, queryTokens } from '#domains/memory/query'
import { recallProfile } from '#domains/memory/recall-profile'
import { benchData } from '../support/environment.ts'
import { askedByNobody, MemoryWorld } from '../support/memory-world.ts'
import type { Slice } from '../support/memory-world.ts'
import { openPortTier } from '../support/port-tier.ts'
import { readLocomo, readMadial, recallAt } from './memory/datasets.ts'
import type { RecallScope, RecallSet } from './memory/datasets.ts'
import type { Bar, Bench } from './support/bench.ts'

const KS = [5, 10, 25] as const
const recorded = fileURLToPath(new URL('../../docs/benchmarks/memory.json', import.meta.url))

type Leg = { name: string; textWeight: number; vectorWeight: number; uses: 'text' | 'vector' | 'both' }
type Result = { set: string; questions: number; leg: string; recall: Record<string, number> }
type Answer = Parameters<typeof recallAt>[1][number]

export const bench: Bench = async ({ args, say }) => {
  const { values } = parseArgs({
    args: [...args],
    options: { tier: { type: 'string', default: 'light' }, weights: { type: 'string' }, 'no-write': { type: 'boolean', default: false } },
  })
  const folder = benchData()
  const tier = await openPortTier(values.tier === 'full' ? 'full' : 'light')
  try {
    const world = new MemoryWorld(tier)
    const slice = await world.slice()
    const profile = recallProfile(slice.embeddings.model)
    const weights = values.weights?.split(',').map(Number) ?? [profile.vectorWeight]
    const legs: Leg[] = [
      { name: 'text', textWeight: 1, vectorWeight: 0, uses: 'text' },
      { name: 'vector', textWeight: 0, vectorWeight: 1, uses: 'vector' },
      ...weights.map((weight): Leg => ({
        name: `fusion, vector × ${weight}`,
        textWeight: profile.textWeight,
        vectorWeight: weight,
        uses: 'both',
      })),
    ]
    const results: Result[] = []
    const locomo = readLocomo(folder)
    for (const set of [locomo, readMadial(folder, 'message and dialogue'), readMadial(folder, 'message')]) {
      for (const result of await measureSet({ world, slice, set, legs })) {
        results.push(result)
        say(`${result.set}  ${result.leg}  ${KS.map((k) => `@${k} ${result.recall[k]}`).join('  ')}`)
      }
    }
    if (!values['no-write']) {
      const { rankConstant, textWeight, vectorWeight, depth, vectorFloor } = profile
      const figures = { embedder: slice.embeddings.slug, profile: { rankConstant, textWeight, vectorWeight, depth, vectorFloor }, results }
      writeFileSync(recorded, `${JSON.stringify(figures, null, 2)}\n`)
    }
    return barsOf(
      results.filter((result) => result.set === locomo.name),
      `fusion, vector × ${profile.vectorWeight}`,
    )
  } finally {
    await tier.close()
  }
}

async function measureSet({
  world,
  slice,
  set,
  legs,
}: {
  world: MemoryWorld
  slice: Slice
  set: RecallSet
  legs: readonly Leg[]
}): Promise<Result[]> {
  const answers = new Map<Leg, Answer[]>(legs.map((leg) => [leg, []]))
  for (const scope of set.scopes) {
    const ask = await plantScope(world, slice, scope)
    for (const question of scope.questions) {
      for (const leg of legs) answers.get(leg)?.push({ found: await ask(question, leg), relevant: question.relevant })
    }
  }
  return legs.map((leg) => {
    const of = answers.get(leg) ?? []
    const recall = recallAt(KS, of)
    return {
      set: set.name,
      questions: of.length,
      leg: leg.name,
      recall: Object.fromEntries(KS.map((k, index) => [k, Math.round((recall[index] ?? 0) * 10) / 10])),
    }
  })
}

/** Puts a scope's documents into memories of a person of its own, and answers how to ask there. Equal texts are one memory. */
async function plantScope(world: MemoryWorld, slice: Slice, { documents }: RecallScope) {
  const person = await world.person()
  const byText = Map.groupBy(documents, (document) => document.text)
  const planted = await world.plant(slice, person, [...byText.keys()])
  const idsOf = new Map([...byText.values()].map((same, index) => [planted[index] ?? '', new Set(same.map((document) => document.id))]))
  const profile = recallProfile(slice.embeddings.model)
  return async ({ message, dialogue }: { message: string; dialogue: string }, leg: Leg): Promise<ReadonlySet<string>[]> => {
    const queries = queryTexts({ message, dialogue })
    const vector = leg.uses === 'text' ? null : await slice.embeddings.query(queries, askedByNobody)
    const { candidates } = await slice.recaller.recall({
      ...person,
      ...(leg.uses === 'vector' ? { tokens: [], weights: [] } : queryTokens(queries)),
      vector: vector?.leg === 'used' ? vector : null,
      levels: ['explicit'],
      includeProposed: false,
      includeReal: true,
      now: world.clock.now(),
      ...profile,
      textWeight: leg.textWeight,
      vectorWeight: leg.vectorWeight,
      limit: Math.max(...KS),
    })
    return candidates.map((candidate) => idsOf.get(candidate.memory_id) ?? new Set<string>())
  }
}

/** P6 is about recall@10 on LoCoMo: the fusion finds more than the better of its legs. The text leg is BM25. */
function barsOf(results: readonly Result[], fusion: string): Bar[] {
  return [...Map.groupBy(results, (result) => result.set)].map(([set, of]) => {
    const at10 = (leg: string) => of.find((result) => result.leg === leg)?.recall['10'] ?? Number.NaN
    const better = Math.max(at10('text'), at10('vector'))
    const fused = at10(fusion)
    return {
      name: `recall@10 of the fusion, ${set}`,
      bar: `> ${better}, the better of its legs`,
      measured: String(fused),
      held: fused > better,
    }
  })
}
