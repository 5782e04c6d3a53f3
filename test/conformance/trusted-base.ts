import type { Clause } from './matrix.ts'

const admission = 'libs/kernel/admission/admit.spec.ts'
const gate = 'libs/kernel/gate/forbidden-gate.spec.ts'
const loop = 'libs/kernel/reducer/reduce.spec.ts'
const acting = 'libs/kernel/reducer/reduce-actions.spec.ts'
const driver = 'libs/kernel/driver/driver.spec.ts'
const actions = 'test/story/actions.spec.ts'
const runs = 'test/story/runs.spec.ts'
const tools = 'test/story/tools.spec.ts'
const unshown = 'test/story/unshown-tools.spec.ts'
const tree = 'test/invariants/tree.spec.ts'
const kernelRecord = 'test/invariants/kernel-record.spec.ts'
const kernelRuns = 'test/invariants/kernel-runs.spec.ts'

/** The five invariants that every mechanism is asked about. */
export const invariants: readonly Clause[] = [
  {
    id: 'I.bounded.runs',
    must: 'Runs that wait are bounded for each owner; one more is refused by name.',
    tests: { [runs]: ['is bounded for each owner'] },
  },
  {
    id: 'I.bounded.steers',
    must: 'Interjections that wait are bounded for each run; one more is refused by name.',
    tests: { [runs]: ['they are bounded'] },
  },
  {
    id: 'I.bounded.commands',
    must: 'A run’s queue of commands is bounded; what does not fit is handed back.',
    tests: { [driver]: ['hands back what does not fit'] },
  },
  {
    id: 'I.bounded.events',
    must: 'What is to be written and what is to be read of a run’s events is bounded on both sides.',
    tests: {
      'libs/runtime/turn/delta-writer.spec.ts': ['lets the first piece go at once', 'into bounded segments and deltas'],
      'test/story/streams.spec.ts': ['a reader that does not read is let go'],
    },
  },
  {
    id: 'I.bounded.retries',
    must: 'A request, a job and an action are tried a declared number of times.',
    tests: {
      [loop]: ['S4: tries again only before the first byte'],
      'test/ports/job-runner.spec.ts': ['gives a row up after six tries, visibly'],
      [actions]: ['that fails again and again ends the run by its budget'],
    },
  },
  {
    id: 'I.bounded.turns',
    must: 'A run cannot go on without end: its turns and the actions of a turn are bounded.',
    tests: { [loop]: ['turns are bounded'], [driver]: ['takes up no more actions of one turn than are allowed'] },
  },
  {
    id: 'I.bounded.waits',
    must: 'Waiting in line and waiting for a person both end, and that is told.',
    tests: {
      [runs]: ['is left by waiting too long, visibly'],
      'test/invariants/broken-resume.spec.ts': ['once the question’s time is over'],
      [acting]: ['looks for what was never sent a bounded number of times'],
      'test/ports/stragglers.spec.ts': ['closes the questions of all others'],
    },
  },
  {
    id: 'I.recoverable',
    must: 'A process may die anywhere: what it was about is ended or taken up again from the record alone.',
    tests: {
      'test/light/run-death.spec.ts': ['killed in mid-stream', 'killed again and again'],
      'test/full/replicas-owner-lost.full.spec.ts': ['killed: the other takes over when the lease is over'],
      [acting]: ['an owner that is gone leaves an unknown behind, from its record too'],
    },
  },
  {
    id: 'I.reproducible',
    must: 'The same commands give the same states and the same requests, byte for byte.',
    tests: { [loop]: ['is deterministic, ends once'], [acting]: ['deterministic, each intent sent by one dispatch'] },
  },
  {
    id: 'I.observable.recorded',
    must: 'Admissions, effects, exhaustions, refusals and endings are events of the run that they concern.',
    tests: {
      [kernelRecord]: ['names run, owner and trace on every event'],
      'test/structure/dictionary.spec.ts': ['knows every event that is written anywhere'],
    },
  },
  {
    id: 'I.observable.no-console',
    must: 'The Kernel writes to no console beside its record.',
    tests: { 'test/structure/lint.spec.ts': ['eslint(no-console) is an error', 'none switches a rule off'] },
  },
  {
    id: 'I.deny-by-default',
    must: 'Nothing runs that nobody granted, and one more layer only narrows.',
    tests: { [admission]: ['nothing runs that nobody granted', 'one more layer, rule or listener never widens'] },
  },
  {
    id: 'I.no-authority-by-mood',
    must: 'No wording gains authority, however it demands, begs or claims.',
    tests: { [gate]: ['no wording of the request'], 'test/story/injected-page.spec.ts': ['no wording of it changes the verdict'] },
  },
]

export const identityAndTrust: readonly Clause[] = [
  {
    id: 'K1.run-binding',
    must: 'A run is bound to its owner, its id, its pinned bundle and the hash of its resolved profile.',
    tests: { [kernelRecord]: ['binds a run to its owner, bundle and resolved profile'] },
  },
  {
    id: 'K1.lattice',
    must: 'Trust has three levels in order, and of several the lowest counts.',
    tests: { 'libs/contracts/enums.spec.ts': ['trust is a lattice of three'] },
  },
  {
    id: 'K1.tool-output-untrusted',
    must: 'What the web or a tool server answers is untrusted.',
    tests: {
      'libs/infra/executors/http/http-target.spec.ts': ['puts arguments where they belong and nothing else anywhere'],
      'libs/infra/executors/mcp/mcp-target.spec.ts': ['the official test servers'],
    },
  },
  {
    id: 'K1.tool-description-untrusted',
    must: 'What a tool server says of its tools is cleaned, bounded and no order.',
    tests: {
      'libs/infra/executors/mcp/mcp-target.spec.ts': ['is cleaned, bounded and never an order'],
      [tools]: ['are asked, accepted and called'],
    },
  },
  {
    id: 'K1.import-untrusted-until-accepted',
    must: 'An imported file stays untrusted until its owner has seen and accepted it; then it is workspace.',
    tests: {
      'test/light/characters-api.spec.ts': ['stays untrusted until it is accepted, once'],
      'libs/runtime/prompt/persona-entities.spec.ts': ['the card untrusted until accepted'],
    },
  },
  {
    id: 'K1.owner-authored-workspace',
    must: 'Persona, lore and settings that the owner wrote are workspace.',
    tests: { 'test/light/characters-api.spec.ts': ['trusts what the owner wrote'] },
  },
  {
    id: 'K1.typed-now-trusted',
    must: 'What the signed-in owner types now is trusted.',
    tests: { [kernelRuns]: ['trusts what the owner types, and of an answer no more than its context'] },
  },
  {
    id: 'K1.derived-meet.answer',
    must: 'An answer has the meet of everything in its context, and keeps it.',
    tests: {
      [kernelRuns]: ['trusts what the owner types, and of an answer no more than its context'],
      [actions]: ['is refused under anything untrusted'],
      'libs/runtime/prompt/assemble.properties.spec.ts': ['never trusts what is sent more than its least trusted part'],
      'test/story/much-text.spec.ts': ['is to be believed no more than what it was made of'],
    },
  },
  {
    id: 'K1.derived-meet.memory',
    must: 'A memory has the lowest trust of what it rests on.',
    tests: { 'test/ports/memory-extraction.spec.ts': ['carries the lowest trust of its sources, workspace at most'] },
  },
  {
    id: 'K1.derived-meet.citation',
    must: 'A quotation lowers the trust of whatever quotes it.',
    tests: { 'libs/runtime/prompt/assemble.spec.ts': ['lets a quoted message lower the trust of the entity that quotes it'] },
  },
  {
    id: 'K1.derived-meet.notes',
    must: 'What was noted down comes back with the trust that it was noted with.',
    tests: {
      'test/ports/builtin-tools.spec.ts': ['give back the trust that they were written with'],
      'test/story/injected-page.spec.ts': ['stays untrusted when it is read again'],
    },
  },
  {
    id: 'K1.egress-untrusted-denies',
    must: 'Under anything untrusted nothing leaves, whatever was named, approved or set.',
    tests: {
      [admission]: ['is denied under anything untrusted', 'nothing leaves under untrusted text'],
      [actions]: ['is refused under anything untrusted'],
    },
  },
  {
    id: 'K1.egress-workspace-asks',
    must: 'Under workspace a send asks, even where its tool is named exactly.',
    tests: { [admission]: ['asks under workspace, whatever is named'] },
  },
  {
    id: 'K1.approval-is-trusted-act',
    must: 'The owner’s yes to the exact arguments carries that one action and nothing else.',
    tests: { [admission]: ['let the one action through that they were given for', 'serve nothing else'] },
  },
  {
    id: 'K1.lowest-wins',
    must: 'Less trust never permits more.',
    tests: { [admission]: ['less trust never widens'] },
  },
  {
    id: 'K1.reads-trust-not-wording',
    must: 'Verdicts read trust and structure; no phrase changes one.',
    tests: { [gate]: ['no wording of the request'], 'test/story/injected-page.spec.ts': ['no wording of it changes the verdict'] },
  },
]

export const admissionClauses: readonly Clause[] = [
  {
    id: 'K2.class-order',
    must: 'There are five classes in a fixed order.',
    tests: {
      'libs/contracts/enums.spec.ts': ['five classes, mildest first'],
      [admission]: ['lets arguments raise a class and never lower it'],
    },
  },
  {
    id: 'K2.grants-intersect',
    must: 'Grants are sets; what is allowed is their intersection.',
    tests: { [admission]: ['a grant is an intersection'] },
  },
  {
    id: 'K2.given-by-name',
    must: 'A character has no tool but those that its owner gave it by name, and a call goes to one that its very request showed or to none.',
    tests: {
      [admission]: ['somebody gave it by name'],
      [unshown]: ['is refused as unknown, and told so, when it is called by its own name', 'is none although another one was given'],
    },
  },
  {
    id: 'K2.jobs-do-not-act',
    must: 'A job’s run acts in nothing, and waits for nobody.',
    tests: {
      [admission]: ['a job’s run does nothing of class'],
      [acting]: ['does nothing that the model of a job proposes'],
      [unshown]: ['is shown no tools, and does nothing with those that it calls', 'leaves no run that waits'],
    },
  },
  {
    id: 'K2.pure',
    must: 'The verdict is a function of its facts, whatever order they come in.',
    tests: { [admission]: ['no order of layers, rules or listeners changes the verdict'] },
  },
  {
    id: 'K2.recorded',
    must: 'Every verdict is recorded with what it was a function of and the version of the policy.',
    tests: {
      [actions]: ['the log what it was judged by'],
      [kernelRecord]: ['decides every recorded verdict again from its recorded facts'],
    },
  },
  { id: 'K2.read-only-auto', must: 'Reading needs nobody.', tests: { [admission]: ['reading needs nobody'] } },
  {
    id: 'K2.reversible-undoable',
    must: 'What is reversible runs unattended only where a version lets it be undone.',
    tests: {
      [admission]: ['what can be undone runs unattended', 'what cannot is asked for'],
      'test/ports/builtin-tools.spec.ts': ['only what keeps versions to being undoable'],
    },
  },
  { id: 'K2.code-asks', must: 'Running code asks by default.', tests: { [admission]: ['code asks'] } },
  {
    id: 'K2.auto-lifts-code-alone',
    must: 'The operator’s mode auto lifts the question before code and no other.',
    tests: { [admission]: ['auto lifts that', 'auto lifts nothing else: trust', 'auto lifts nothing else: sending'] },
  },
  {
    id: 'K2.code-without-egress',
    must: 'Code never has a way out.',
    tests: {
      [admission]: ['code never has egress'],
      'libs/infra/executors/sandbox/sandbox.spec.ts': ['with no egress', 'knows nothing of the host'],
    },
  },
  {
    id: 'K2.lasting-classes-ask',
    must: 'Changing trust and acting outside always ask, whatever mode or class rule stands, unless the exact tool was named.',
    tests: { [admission]: ['auto lifts nothing else: trust', 'goes by its exact name alone where all is trusted'] },
  },
  {
    id: 'K2.plan-denies',
    must: 'Mode plan denies everything above reading.',
    tests: { [admission]: ['reading needs nobody in mode plan', 'plan denies all above reading'] },
  },
  {
    id: 'K2.arguments-raise-only',
    must: 'Arguments may raise a tool’s class and never lower it.',
    tests: {
      [admission]: ['lets arguments raise a class and never lower it', 'takes a place that arguments choose for a send'],
      'libs/infra/executors/http/http-target.spec.ts': ['an owner can only raise that'],
      'libs/infra/executors/mcp/mcp-target.spec.ts': ['raises a class but never lowers one'],
    },
  },
  {
    id: 'K2.settings-are-trust-mutating',
    must: 'No tool writes persona, grants, bundles, prompts, plugins or endpoints below the class that always asks.',
    tests: { 'test/ports/builtin-tools.spec.ts': ['are listed in name order, with what admission reads of them'] },
  },
  {
    id: 'K2.sends-are-external',
    must: 'Sending and publishing are external and irreversible.',
    tests: {
      'libs/infra/executors/http/http-target.spec.ts': [
        'acts for good by everything else',
        'is free to send anywhere where arguments choose the host',
      ],
    },
  },
  {
    id: 'K2.configured-endpoints',
    must: 'Requests to the configured model are admitted by configuration and budget, and recorded as such.',
    tests: {
      [loop]: ['answers: started, projected, requested', 'K6: no request is dispatched whose reservation is over the token budget'],
    },
  },
  {
    id: 'K2.nothing-imported-adds-tools',
    must: 'Nothing that is imported or belongs to a character adds a tool, an endpoint, a server, a hook or a script.',
    tests: {
      [kernelRuns]: ['takes no tool, endpoint, server, hook or script from a card'],
      [actions]: ['is shown none, and what it calls all the same is refused'],
      [tools]: ['of a source are none before they are accepted'],
    },
  },
]

export const gateClauses: readonly Clause[] = [
  {
    id: 'gate.four-dimensions',
    must: 'Capability, data, consequence and situation are each judged, and the strictest stands.',
    tests: { [admission]: ['takes the strictest of the four dimensions'] },
  },
  {
    id: 'gate.before-every-model-request',
    must: 'The gate speaks before each request to a model, of answers and of jobs, and nothing is sent that it forbids.',
    tests: {
      [loop]: ['M8: what the gate forbids ends the run and is on record'],
      [kernelRecord]: ['has the gate’s word before every model request'],
      [tree]: ['a secret of this instance is never sent'],
    },
  },
  {
    id: 'gate.before-every-tool-call',
    must: 'The gate speaks before each action.',
    tests: { [gate]: ['the forbidden gate before an effect (M8)'], [acting]: ['sends nothing that is forbidden, and goes on'] },
  },
  {
    id: 'gate.after-listeners',
    must: 'No listener speaks after it: each can only make a verdict stricter.',
    tests: {
      [admission]: ['one more layer, rule or listener never widens'],
      'test/story/listeners.spec.ts': ['is judged by the forbidden gate after the last of them (M8)'],
    },
  },
  { id: 'gate.rule.foreign-owner', must: 'Another owner’s content is forbidden.', tests: { [gate]: ['another owner'] } },
  {
    id: 'gate.rule.fiction-in-real',
    must: 'A memory of a fiction is forbidden in a real tree.',
    tests: {
      [gate]: ['forbids a memory of a fiction'],
      'test/ports/builtin-tools.spec.ts': ['tells nothing of a fiction in the real realm'],
    },
  },
  {
    id: 'gate.rule.tombstoned',
    must: 'What was deleted is forbidden.',
    tests: {
      [gate]: ['forbids what was deleted since'],
      'test/story/much-text.spec.ts': ['is in no later request of that run, and in no answer'],
    },
  },
  {
    id: 'gate.rule.instance-secret',
    must: 'A secret of the instance is forbidden in any request.',
    tests: { [gate]: ['forbids a secret of the instance anywhere in the body'], [tree]: ['a secret of this instance is never sent'] },
  },
  {
    id: 'gate.rule.unseated-writes',
    must: 'A run without the seat that would write persona or canon is forbidden.',
    tests: { [gate]: ['forbids a run without the seat to write persona or canon'], [admission]: ['a job that would change trust'] },
  },
  {
    id: 'gate.rule.untrusted-egress',
    must: 'Sending under an untrusted context is forbidden.',
    tests: { [gate]: ['irreversible_external under untrusted context'] },
  },
  {
    id: 'gate.no-switch',
    must: 'No prompt, character, model, plugin, profile, admin call, setting or row switches it off.',
    tests: { [gate]: ['no further setting, however it is called'], [tree]: ['whoever asks in whatever words, an admin among them'] },
  },
  {
    id: 'gate.refusal-recorded',
    must: 'Every refusal is an event.',
    tests: { [tree]: ['a secret of this instance is never sent'], [actions]: ['is refused under anything untrusted'] },
  },
  {
    id: 'gate.strictest-verdict',
    must: 'There is one scale of four verdicts, and the strictest of all who speak wins.',
    tests: { [gate]: ['takes the strictest of several, and nobody speaking for forbidden'] },
  },
  {
    id: 'gate.unknown-denies',
    must: 'An unknown tool, class, mode, constraint or decision is a no.',
    tests: {
      [gate]: ['reads an unknown value as forbidden'],
      [admission]: ['refuses a value that it does not know', 'an unknown class', 'an unknown mode'],
      'libs/kernel/effects/broker.spec.ts': ['does not run what it cannot hold to its constraints'],
    },
  },
]
