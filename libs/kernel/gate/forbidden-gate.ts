import type { CapabilityClass, EntitySource, ForbiddenRule, Id, RunKind, Trust } from '#contracts'

/** Version of the compiled-in rules, recorded with each decision. */
export const FORBIDDEN_POLICY_VERSION = 1

export type Judgement = { verdict: 'autonomous' } | { verdict: 'forbidden'; rule: ForbiddenRule }

/** Something that a request refers to, as the database knows it; nothing of what it says. */
export type ReferenceFacts = {
  /** `platform`: compiled in, belongs to nobody. */
  owner: Id | 'platform'
  source: EntitySource
  /** Realm kind of a memory or trace; null where none is known. */
  realm: string | null
  /** Deleted, withdrawn, undone or erased since. */
  tombstoned: boolean
}

/** What a run is able to write; canon covers adopting and withdrawing it. */
export type RunFacts = { kind: RunKind; writes: readonly ('persona' | 'canon' | 'memory' | 'conversation')[] }

export type RequestFacts = {
  owner: Id
  run: RunFacts
  /** Realm kind of the tree; null for a run without one. */
  treeRealm: string | null
  references: readonly ReferenceFacts[]
  /** The whole body as it is about to leave. */
  bodyText: string
  /** Keys and tokens of this instance, in plain text. */
  secrets: readonly string[]
}

export type EgressFacts = { effectClass: CapabilityClass; contextTrust: Trust }

/** Shorter values are placeholders such as `ollama`; as secrets they would forbid ordinary words. */
const SHORTEST_SECRET = 12

const REAL = 'real'
const recalledSources: ReadonlySet<EntitySource> = new Set<EntitySource>(['memory', 'trace'])
const seatedRuns: ReadonlySet<RunKind> = new Set<RunKind>(['answer', 'responsive'])
const harmlessInside: ReadonlySet<CapabilityClass> = new Set<CapabilityClass>([
  'read_only',
  'reversible_local',
  'code_executing',
  'trust_mutating',
])

const escapedInJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** A secret as it stands, or as it would stand inside a JSON string, or inside JSON inside a JSON string (tool arguments). */
function holdsSecret(bodyText: string, secret: string): boolean {
  if (secret.length < SHORTEST_SECRET) return false
  const once = escapedInJson(secret)
  return bodyText.includes(secret) || bodyText.includes(once) || bodyText.includes(escapedInJson(once))
}

type Rule<Facts> = { rule: ForbiddenRule; breaks(facts: Facts): boolean }

/** Frozen: only a release changes them (M8). Each asks for what is permitted, so that an unknown value is forbidden. */
const requestRules: readonly Rule<RequestFacts>[] = Object.freeze([
  {
    rule: 'foreign_owner_content',
    breaks: ({ owner, references }) => references.some((reference) => reference.owner !== 'platform' && reference.owner !== owner),
  },
  {
    // A tree whose realm is unknown is taken for real.
    rule: 'fiction_memory_in_real_tree',
    breaks: ({ treeRealm, references }) =>
      (treeRealm === null || treeRealm === REAL) && references.some(({ source, realm }) => recalledSources.has(source) && realm !== REAL),
  },
  { rule: 'tombstoned_reference', breaks: ({ references }) => references.some(({ tombstoned }) => !Object.is(tombstoned, false)) },
  { rule: 'instance_secret_in_request', breaks: ({ bodyText, secrets }) => secrets.some((secret) => holdsSecret(bodyText, secret)) },
  {
    rule: 'maintenance_run_writes_canon',
    breaks: ({ run }) => !seatedRuns.has(run.kind) && run.writes.some((target) => target !== 'memory' && target !== 'conversation'),
  },
] satisfies Rule<RequestFacts>[])

/**
 * The forbidden gate before a model request (spec/2, M8): after all listeners, from these rules alone. It reads structure, never wording; no
 * setting, role or prompt is among its inputs. The first broken rule is named.
 */
export function judgeRequest(facts: RequestFacts): Judgement {
  const broken = requestRules.find(({ breaks }) => breaks(facts))
  return broken ? { verdict: 'forbidden', rule: broken.rule } : { verdict: 'autonomous' }
}

/** The same gate before an effect that leaves the instance: nothing does so under an untrusted context, whatever it says (K1). */
export function judgeEgress({ effectClass, contextTrust }: EgressFacts): Judgement {
  const staysInside = harmlessInside.has(effectClass)
  const trustedEnough = effectClass === 'irreversible_external' && (contextTrust === 'workspace' || contextTrust === 'trusted')
  return staysInside || trustedEnough ? { verdict: 'autonomous' } : { verdict: 'forbidden', rule: 'egress_under_untrusted' }
}
