import type { Clause } from './matrix.ts'

const loop = 'libs/kernel/reducer/reduce.spec.ts'
const acting = 'libs/kernel/reducer/reduce-actions.spec.ts'
const rules = 'libs/kernel/reducer/recording.spec.ts'
const driver = 'libs/kernel/driver/driver.spec.ts'
const broker = 'libs/kernel/effects/broker.spec.ts'
const faults = 'libs/model/openai-gateway.faults.spec.ts'
const ledger = 'test/ports/effect-ledger.spec.ts'
const eventLog = 'test/ports/event-log.spec.ts'
const actions = 'test/story/actions.spec.ts'
const runs = 'test/story/runs.spec.ts'
const streams = 'test/story/streams.spec.ts'
const record = 'test/invariants/record.spec.ts'
const anchors = 'test/invariants/anchors.spec.ts'
const kernelRecord = 'test/invariants/kernel-record.spec.ts'
const kernelRuns = 'test/invariants/kernel-runs.spec.ts'
const scrubbed = 'test/invariants/scrubbed.spec.ts'
const structure = 'test/structure/rules.spec.ts'
const lint = 'test/structure/lint.spec.ts'

export const effectClauses: readonly Clause[] = [
  {
    id: 'K3.only-way-out',
    must: 'Nothing reaches network or process but the adapters of effects, which are named one by one.',
    tests: {
      'test/structure/exits.spec.ts': ['are those that are named here'],
      [structure]: ['model-alone-imports-openai', 'nothing-inside-opens-a-connection', 'nothing-inside-starts-a-process'],
      [lint]: ['eslint(no-restricted-globals) is an error'],
    },
  },
  {
    id: 'K3.only-way-out.embeddings',
    must: 'A request for embeddings goes out as an effect too: with an intent, a terminal and a place in the record.',
    tests: {
      'libs/kernel/effects/embedding-broker.spec.ts': [
        'is reserved, recorded and committed before it is sent, and settled after',
        'is not sent where its intent cannot be made durable',
        'is unknown, once, whoever finds it; a late answer changes nothing',
      ],
      'test/story/embeddings.spec.ts': [
        'has its intent in the record before it arrives, and one terminal after it',
        'left open by who is gone is unknown, once, whoever says so',
        'has one terminal in the database too, and no other past',
      ],
    },
  },
  {
    id: 'K3.intent-first',
    must: 'The intent is committed before anything is sent.',
    tests: {
      [acting]: ['records the intent before anything is sent, one action at a time'],
      [loop]: ['answers: started, projected, requested'],
      [driver]: ['asks for nothing of what could not be recorded'],
    },
  },
  {
    id: 'K3.not-durable-not-sent',
    must: 'Where the intent cannot be made durable, nothing is sent.',
    tests: {
      [driver]: ['asks for nothing of what could not be recorded'],
      [kernelRuns]: ['sends nothing whose intent cannot be written'],
    },
  },
  {
    id: 'K3.intent-contents',
    must: 'An intent names its id, its tool call, tool, capability, place and arguments, and these are scrubbed.',
    tests: { [kernelRecord]: ['names in each intent'], [scrubbed]: ['a secret in the arguments of an action'] },
  },
  {
    id: 'K3.ids-ours',
    must: 'Ids are minted here and come with commands, so that they are the same again; the provider’s are nobody’s.',
    tests: { [actions]: ['mints ids of its own'], [loop]: ['is deterministic, ends once'] },
  },
  {
    id: 'K3.one-terminal',
    must: 'Each effect that was sent has one terminal.',
    tests: { [acting]: ['everything settled at the end'], [ledger]: ['follows the state machine and nothing else, whoever writes'] },
  },
  {
    id: 'K3.tool-done-counts',
    must: 'A tool that was used says so by tool.done, which carries what it brought; it alone counts as a use.',
    tests: { [kernelRecord]: ['counts as a use of a tool what ended in tool.done'] },
  },
  {
    id: 'K3.authoritative-no',
    must: 'Failed means that the target said no or that nothing was sent; anything else is unknown.',
    tests: {
      'libs/infra/executors/http/http-target.spec.ts': [
        'failed where nothing could be sent',
        'unknown where a lasting call was sent and no answer came',
        'unknown where a lasting call was answered with another protocol',
      ],
    },
  },
  {
    id: 'K3.unknown-never-replayed',
    must: 'What nobody knows the outcome of is never sent again by itself.',
    tests: { [acting]: ['never sends again what nobody knows the outcome of'], [actions]: ['is never sent again and waits for a person'] },
  },
  {
    id: 'K3.settled-by-look-up-or-person',
    must: 'An unknown is settled once, by the target’s own word or by a person.',
    tests: {
      [acting]: ['never sends again what nobody knows the outcome of'],
      [broker]: ['takes the target’s proof for what became of it, and absence for none'],
      [actions]: ['is never sent again and waits for a person'],
      'libs/infra/executors/http/http-target.spec.ts': ['takes no other answer for proof'],
    },
  },
  {
    id: 'K3.terminals-hold-references',
    must: 'Terminals hold references, not what they refer to.',
    tests: { 'test/structure/dictionary.spec.ts': ['tool.done holds ids', 'effect.done holds ids', 'effect.failed holds ids'] },
  },
  {
    id: 'K3.reference-without-authority',
    must: 'To know a reference permits nothing.',
    tests: {
      'test/light/http-isolation.spec.ts': ['answers another owner the same where the id stands in a body or a query'],
      'libs/kernel/gate/forbidden-gate.spec.ts': ['another owner'],
    },
  },
  {
    id: 'K3.key-bound-to-arguments',
    must: 'The same id twice, or the same key with other arguments, is refused.',
    tests: { [ledger]: ['binds a key once'], [broker]: ['sends nothing under a key that the target knows with other arguments'] },
  },
  {
    id: 'K3.model-failed-before-first-byte',
    must: 'A model request that was refused or answered with 429 or 5xx before its first byte is failed, and is tried again as a new effect.',
    tests: {
      [faults]: ['a provider fault before anything was generated'],
      [loop]: ['each try a new effect'],
      [streams]: ['S4: a busy provider is asked again'],
    },
  },
  {
    id: 'K3.model-otherwise-unknown',
    must: 'Any other end of a model request is unknown and ends the run as interrupted.',
    tests: { [faults]: ['an outcome that nobody knows (K3)'], [streams]: ['T8: an error object after 30 words'] },
  },
  {
    id: 'K3.model-unknown-charged',
    must: 'A model request with an unknown outcome is charged conservatively.',
    tests: { [streams]: ['the reservation is charged'] },
  },
  {
    id: 'K3.model-unknown-holds-nothing',
    must: 'Such a request holds neither the seat nor a place among what a person must settle.',
    tests: {
      [streams]: ['a free seat, and the next in line runs'],
      [kernelRuns]: ['leaves no unknown model request for a person to settle'],
    },
  },
  {
    id: 'K3.fence-stops-late-writes',
    must: 'Whoever lost its claim or its run writes nothing more.',
    tests: { [ledger]: ['lets only the newest claim send'], [eventLog]: ['leaves out a run that another process took over'] },
  },
  {
    id: 'K3.exactly-once-claims',
    must: 'Exactly once is claimed only where the target binds keys to arguments; otherwise the unknown is admitted.',
    tests: {
      'test/ports/builtin-tools.spec.ts': ['are written once per key, which is bound to its arguments'],
      [actions]: ['is never sent again and waits for a person'],
    },
  },
  {
    id: 'K3.keys-outlive-retries',
    must: 'What binds a key outlives every retry.',
    tests: { [ledger]: ['keeps what an effect was bound to, and every row'] },
  },
  {
    id: 'K3.revoke-races-send',
    must: 'A revocation that comes while a send is under way is on record with its time, beside what really became of the send.',
    tests: { [kernelRuns]: ['keeps a revocation that came during a send, and what became of the send'] },
  },
]

export const reducerClauses: readonly Clause[] = [
  {
    id: 'K4.pure',
    must: 'The reducer reads no clock, chance, environment or network.',
    tests: {
      [lint]: [
        'eslint(no-restricted-globals) is an error',
        'eslint(no-restricted-properties) is an error',
        'nothing inside asks what time it is by making a date',
      ],
      [structure]: ['kernel-imports-contracts-alone'],
    },
  },
  {
    id: 'K4.deterministic',
    must: 'The same commands give the same states and actions.',
    tests: { [loop]: ['is deterministic, ends once'], [acting]: ['deterministic, each intent sent by one dispatch'] },
  },
  {
    id: 'K4.leaves-its-input',
    must: 'Reducing changes no state that it was given.',
    tests: { [rules]: ['changes nothing that it was given'] },
  },
  {
    id: 'K4.readings-in-commands',
    must: 'Readings arrive in commands: stored runs decide themselves again from what is recorded.',
    tests: { 'test/story/turn.spec.ts': ['streams an answer, seals it'], [kernelRecord]: ['decides stored runs again, byte for byte'] },
  },
  {
    id: 'K4.explicit-transitions',
    must: 'Every way a turn can end is a branch of its own; what is late changes nothing.',
    tests: { [loop]: ['seals once and never after the end'], [lint]: ['typescript(switch-exhaustiveness-check) is an error'] },
  },
]

export const recordClauses: readonly Clause[] = [
  {
    id: 'K5.append-only',
    must: 'Nothing that is recorded is changed or removed.',
    tests: {
      [eventLog]: ['the table itself'],
      [record]: ['what the database refuses'],
      'test/invariants/direct-sql.spec.ts': ['no table is emptied at one stroke', 'M1: words stay as they were written'],
    },
  },
  {
    id: 'K5.chain',
    must: 'Each stream is a chain of SHA-256 hashes.',
    tests: {
      'libs/kernel/record/chain.spec.ts': ['the hash over the one before', 'changes every later hash when one byte of an event changes'],
    },
  },
  {
    id: 'K5.canonical-json',
    must: 'What is hashed is canonical JSON.',
    tests: { 'libs/kernel/record/chain.spec.ts': ['as RFC 8785 shows', 'whatever the order of its members'] },
  },
  {
    id: 'K5.anchors',
    must: 'Anchors over all heads show a tail that was cut.',
    tests: {
      [anchors]: [
        'finds a tail that was cut off with its head put back',
        'finds a whole stream that is gone with its head',
        'cover the heads that moved since the one before',
      ],
    },
  },
  {
    id: 'K5.verified-from-start',
    must: 'Verification goes from the first event on and finds any change.',
    tests: { [record]: ['finds nothing where nothing was changed', 'verify'] },
  },
  {
    id: 'K5.broken-refuses-resume',
    must: 'A run with a broken chain is not resumed.',
    tests: { 'test/invariants/broken-resume.spec.ts': ['is not resumed by an answer: approve', 'is not resumed by an answer: refuse'] },
  },
  {
    id: 'K5.broken-refuses-continue-and-fork',
    must: 'Nothing continues from or forks off a broken chain.',
    tests: { [record]: ['of a tree refuses asking, continuing and forking', 'of a run refuses going on from its answer'] },
  },
  {
    id: 'K5.cause',
    must: 'Every event records the command that caused it, with its readings.',
    tests: { [kernelRecord]: ['names the cause of every event', 'decides stored runs again, byte for byte'] },
  },
  {
    id: 'K5.command-accepted',
    must: 'command.accepted stands only for a command that causes no other event.',
    tests: { [rules]: ['writes command.accepted for a command that causes nothing else, and for no other'] },
  },
  {
    id: 'K5.records-decisions',
    must: 'Each decision of a policy is recorded.',
    tests: { [loop]: ['answers: started, projected, requested'], [actions]: ['the log what it was judged by'] },
  },
  {
    id: 'K5.records-vetoes',
    must: 'A veto is recorded.',
    tests: {
      [rules]: ['records a veto and ends the run by it', 'ends a run whose request a listener keeps back'],
      'libs/kernel/reducer/reduce-actions.spec.ts': ['does nothing that a listener refuses, and says who did'],
      'test/story/listeners.spec.ts': ['to an answer leaves a partial that never looks whole'],
    },
  },
  {
    id: 'K5.records-rewrites',
    must: 'A rewrite is recorded.',
    tests: {
      [rules]: ['records what listeners rewrote, in order, before the request; whether it is sent or not'],
      'test/story/listeners.spec.ts': ['is sent, recorded and rebuilt as they left it'],
    },
  },
  {
    id: 'K5.records-budgets',
    must: 'Reservations, settlements and exhaustions are recorded.',
    tests: { [loop]: ['answers: started, projected, requested'], [runs]: ['of tokens: nothing is sent that could go beyond them'] },
  },
  {
    id: 'K5.shared-prefix',
    must: 'Resume goes on in the same chain; continue and fork share what lies before and append apart.',
    tests: {
      [kernelRecord]: ['resumes in the same chain, and forks into one of its own'],
      'test/story/continued.spec.ts': ['is gone on with by another run that begins with its words'],
    },
  },
  {
    id: 'K5.scrubbed',
    must: 'No path writes around the scrubber.',
    tests: {
      [scrubbed]: [
        'a secret in the arguments of an action',
        'a secret behind a line break',
        'a secret in an action of delegated work',
        'a secret in what an action brought',
        'a secret in what the model says',
      ],
      'test/ports/memory-recall.spec.ts': ['masks a secret again that reached the store unmasked'],
    },
  },
]

export const budgetClauses: readonly Clause[] = [
  { id: 'K6.turns', must: 'Turns are bounded.', tests: { [runs]: ['of turns: an interjection beyond them'] } },
  { id: 'K6.wall-time', must: 'Time is bounded.', tests: { [runs]: ['of time: a provider that takes too long is left'] } },
  {
    id: 'K6.cost',
    must: 'Cost is bounded, of actions and of model requests.',
    tests: {
      [acting]: ['K6: an action over the budget', 'E14: of twelve actions'],
      [rules]: ['sends no request that could cost more than is left'],
    },
  },
  { id: 'K6.tokens', must: 'Tokens are bounded.', tests: { [runs]: ['of tokens: nothing is sent that could go beyond them'] } },
  {
    id: 'K6.tool-errors',
    must: 'Errors of tools in a row are bounded.',
    tests: { [actions]: ['that fails again and again ends the run by its budget'] },
  },
  {
    id: 'K6.null-is-unbounded',
    must: 'A bound that is null promises nothing.',
    tests: { [rules]: ['promises nothing where a bound is null'] },
  },
  {
    id: 'K6.reserve-dispatch-settle',
    must: 'What is sent was reserved first and is settled after, for models and tools alike, however it ends.',
    tests: {
      [loop]: ['is deterministic, ends once'],
      [acting]: ['everything settled at the end'],
      'test/story/task-verifiers.spec.ts': ['holds what it may cost until that is known', 'is charged to the task, bounded or not'],
    },
  },
  {
    id: 'K6.settled-after-crash',
    must: 'After a crash the reservation is settled from what is durable.',
    tests: {
      [acting]: ['an owner that is gone leaves an unknown behind, from its record too'],
      'test/light/run-death.spec.ts': ['killed in mid-stream'],
    },
  },
  {
    id: 'K6.only-lowered',
    must: 'No layer raises a bound; it can only lower it.',
    tests: { 'libs/runtime/turn/granted-tools.spec.ts': ['no layer of grants raises what a run may cost'] },
  },
  {
    id: 'K6.children',
    must: 'Children draw from what their parent has left.',
    tests: { 'test/story/delegated.spec.ts': ['is bounded by what the task has left, in cost and in actions'] },
  },
  {
    id: 'K6.fails-closed.price',
    must: 'A bound on cost without a known price fails closed.',
    tests: {
      [acting]: ['without a price where cost is bound'],
      [rules]: ['sends no request that could cost more than is left'],
      'test/story/task-verifiers.spec.ts': ['is not asked where that could cost more than the task has left'],
    },
  },
  {
    id: 'K6.fails-closed.usage',
    must: 'Tokens that the provider does not tell are reckoned from above, and marked so.',
    tests: {
      'libs/model/tokenizers.spec.ts': ['the over-estimate'],
      [kernelRuns]: ['reckons tokens that the provider does not tell, and says so'],
    },
  },
  {
    id: 'K6.interrupt',
    must: 'An interruption stops at the next safe point.',
    tests: {
      [loop]: ['M7: a run that is cut off never looks finished'],
      [acting]: ['E12: an end that was asked for waits for what is out'],
    },
  },
  {
    id: 'K6.drain',
    must: 'Draining accepts nothing new, ends what runs as drained, and leaves; it is no interruption by another name.',
    tests: {
      [rules]: ['drains under its own name'],
      'test/full/replicas-owner-lost.full.spec.ts': ['asked to end: it seals what was said at once'],
      [kernelRuns]: ['drains: begins nothing more'],
    },
  },
  {
    id: 'K6.drain-checkpoint',
    must: 'What drained where no word was coming in leaves a checkpoint, and another process goes on from it.',
    tests: {
      'test/story/drain.spec.ts': ['finishes the action that is out, and goes on after it with what was seen'],
      [acting]: ['hands over what no word is coming in for'],
    },
  },
  {
    id: 'K6.exhausted-checkpoint',
    must: 'What ran out of budget leaves a checkpoint to be resumed from.',
    tests: {
      'libs/kernel/reducer/reduce.spec.ts': ['leaves a checkpoint where a budget or its process ended it, and nowhere else'],
      'test/story/continued.spec.ts': [
        'leaves a checkpoint at the end of its chain, and says so',
        'is gone on with by another run that begins with its words',
        'knows what was done in between, and does it no second time',
      ],
    },
  },
]
