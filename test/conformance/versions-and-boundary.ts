import type { Clause } from './matrix.ts'

const abi = 'libs/contracts/abi.spec.ts'
const driver = 'libs/kernel/driver/driver.spec.ts'
const eventLog = 'test/ports/event-log.spec.ts'
const structure = 'test/structure/rules.spec.ts'
const lint = 'test/structure/lint.spec.ts'
const bundles = 'test/story/bundles.spec.ts'
const versions = 'test/invariants/versions.spec.ts'
const kernelRecord = 'test/invariants/kernel-record.spec.ts'

export const versionClauses: readonly Clause[] = [
  {
    id: 'K7.in-both-envelopes',
    must: 'Commands and events carry the version of the protocol.',
    tests: { [versions]: ['stands on a run, its commands and its events'] },
  },
  { id: 'K7.one-per-run', must: 'A run has one version for life.', tests: { [versions]: ['is one for the life of a run'] } },
  {
    id: 'K7.mismatch-refused',
    must: 'A run of another version is claimed by nobody, and an event of another version is not read as ours.',
    tests: {
      [versions]: [
        'of another kind: the run is left to whoever has it',
        'of another kind: an event is not read as ours',
        'is not activated',
        'that another replica activated: no run begins here under it',
      ],
      [eventLog]: ['leaves out a run of another version of the protocol'],
    },
  },
  {
    id: 'K7.never-negotiated',
    must: 'There is one version, compiled in; nothing asks for another.',
    tests: { [abi]: ['has one version of the protocol'], [versions]: ['of another kind: the run is left'] },
  },
  {
    id: 'K7.ports-versioned',
    must: 'Every port carries its version.',
    tests: { 'libs/kernel/ports/versions.spec.ts': ['names every port'] },
  },
  { id: 'K7.abi-snapshot', must: 'What others build on is compared with a frozen snapshot.', tests: { [abi]: ['is what was frozen'] } },
  {
    id: 'K7.unknown-command',
    must: 'An unknown command is dropped whole, with a notice that holds nothing of it.',
    tests: { [driver]: ['drops an unknown command whole'] },
  },
  {
    id: 'K7.unknown-event',
    must: 'An unknown event is dropped whole, with a notice that holds nothing of it.',
    tests: {
      [versions]: ['an unknown event is dropped whole', 'verify takes an event of another release for whole'],
      'libs/kernel/record/read-record.spec.ts': ['drops an unknown event whole'],
    },
  },
]

export const killClauses: readonly Clause[] = [
  {
    id: 'K8.kill.global',
    must: 'The kill switch stops everything at the next safe point.',
    tests: { [eventLog]: ['writes nothing at all under the global kill switch'] },
  },
  {
    id: 'K8.kill.owner',
    must: 'It stops what belongs to one owner.',
    tests: {
      [eventLog]: ['leaves out what the kill switch of its owner stops'],
      'test/light/governance-api.spec.ts': ['is set and lifted in each scope'],
    },
  },
  {
    id: 'K8.kill.character',
    must: 'It stops one character.',
    tests: {
      [eventLog]: ['leaves out what the kill switch of its character stops'],
      'test/story/runs.spec.ts': ['stops what speaks and what is silent'],
    },
  },
  {
    id: 'K8.kill.other-replicas',
    must: 'It is effective within one safe point on every replica.',
    tests: {
      'test/full/replicas-kill.full.spec.ts': ['set through one replica stops what runs on the other'],
      [eventLog]: ['leaves out what the kill switch of its'],
    },
  },
  {
    id: 'K8.bundle-moved-by-people',
    must: 'The active bundle is changed by a person and by nobody else.',
    tests: { [bundles]: ['are activated only after they were accepted, from what is active, by an admin'] },
  },
  {
    id: 'K8.bundle-accepted-only',
    must: 'Only an accepted, hashed bundle becomes active.',
    tests: { [bundles]: ['are activated only after they were accepted', 'are the same by the same content'] },
  },
  {
    id: 'K8.bundle-event',
    must: 'The event of a change names from, to and what triggered it.',
    tests: { [bundles]: ['the way back is one move'] },
  },
  {
    id: 'K8.evaluations-append-only',
    must: 'Evaluations and promotions are only added.',
    tests: { [bundles]: ['are activated only after they were accepted'] },
  },
  {
    id: 'K8.bundle-not-its-own-judge',
    must: 'A bundle touches no evaluation of itself, and nothing activates one by itself.',
    tests: { [bundles]: ['activate nothing by being proposed or accepted', 'never raise the platform’s limits'] },
  },
  {
    id: 'K8.profile-hash',
    must: 'The resolved profile is the bundle’s hash with the other layers, and is hashed for each run.',
    tests: { [kernelRecord]: ['binds a run to its owner, bundle and resolved profile'] },
  },
]

export const driverClauses: readonly Clause[] = [
  {
    id: 'K9.bounded',
    must: 'The driver’s queue is bounded, and hands back what does not fit.',
    tests: {
      [driver]: ['hands back what does not fit', 'ends with the fault of whoever cannot go on'],
      'libs/runtime/turn/delta-writer.spec.ts': ['makes whoever brings too much wait until there is room'],
      'test/story/much-text.spec.ts': ['are all kept, thought and said in turns'],
    },
  },
  {
    id: 'K9.runs-actions',
    must: 'It does what the reducer asks, in that order, one command after another.',
    tests: { [driver]: ['does what was asked, in order, one command after another'] },
  },
  {
    id: 'K9.decides-nothing',
    must: 'It adds nothing to what the reducer asks.',
    tests: { [driver]: ['does what was asked, in order, one command after another'] },
  },
  { id: 'K9.no-prompt', must: 'It builds no prompt.', tests: { [structure]: ['kernel-builds-no-prompt'] } },
  { id: 'K9.no-context', must: 'It selects no context.', tests: { [structure]: ['kernel-selects-no-context'] } },
]

export const negativeSpace: readonly Clause[] = [
  {
    id: 'NS.files-and-environment',
    must: 'The Kernel reads no files and no environment.',
    tests: { [structure]: ['kernel-reads-no-files', 'kernel-reads-no-environment'], [lint]: ['node(no-process-env) is an error'] },
  },
  { id: 'NS.provider', must: 'The Kernel calls no provider.', tests: { [structure]: ['kernel-calls-no-provider'] } },
  { id: 'NS.prompt', must: 'The Kernel builds no prompt.', tests: { [structure]: ['kernel-builds-no-prompt'] } },
  { id: 'NS.context', must: 'The Kernel selects no context.', tests: { [structure]: ['kernel-selects-no-context'] } },
  { id: 'NS.process', must: 'The Kernel starts no process.', tests: { [structure]: ['kernel-spawns-no-process'] } },
  { id: 'NS.mcp', must: 'The Kernel reads no MCP.', tests: { [structure]: ['kernel-parses-no-MCP'] } },
  { id: 'NS.page', must: 'The Kernel draws no page.', tests: { [structure]: ['kernel-draws-no-page'] } },
  { id: 'NS.training', must: 'The Kernel trains and activates nothing.', tests: { [structure]: ['kernel-trains-and-activates-nothing'] } },
]

export const abiClauses: readonly Clause[] = [
  {
    id: 'ABI.TaskEnvelope',
    must: 'A task arrives with id, version, input, trust, acceptance, budget and ceiling.',
    tests: { [abi]: ['TaskEnvelope'] },
  },
  {
    id: 'ABI.ContextRequest',
    must: 'Context is asked for by slot, selectors, size and a ceiling of trust.',
    tests: { [abi]: ['ContextRequest'] },
  },
  { id: 'ABI.ContextGrant', must: 'What is granted names its request, its segments and its size.', tests: { [abi]: ['ContextGrant'] } },
  {
    id: 'ABI.ToolIntent',
    must: 'An intent says who proposes which call, and that nobody has admitted it.',
    tests: { [abi]: ['ToolIntent'] },
  },
  { id: 'ABI.EffectProposal', must: 'A proposed effect carries what was admitted, as a set.', tests: { [abi]: ['EffectProposal'] } },
  { id: 'ABI.ArtifactRef', must: 'A reference names content and carries no authority.', tests: { [abi]: ['ArtifactRef'] } },
  {
    id: 'ABI.plugins-do-no-io',
    must: 'Plugins return requests and intents; they reach nothing.',
    tests: {
      [structure]: [
        'nothing-inside-reads-files',
        'nothing-inside-opens-a-connection',
        'nothing-inside-starts-a-process',
        'pivots-import-the-plugin-API-alone',
      ],
      [lint]: ['eslint(no-restricted-globals) is an error'],
    },
  },
  {
    id: 'ABI.plugins-mint-no-grant',
    must: 'A plugin never mints a grant: no intent can say that it was admitted.',
    tests: { [abi]: ['lets nobody who proposes say what was admitted'] },
  },
  {
    id: 'ABI.slots',
    must: 'A slot is a domain and a role; the nine pivots are lingtai’s; another one needs no change of the Kernel.',
    tests: { [abi]: ['takes any slot of a domain and a role'] },
  },
]
