import type { Clause } from './matrix.ts'

const acting = 'libs/kernel/reducer/reduce-actions.spec.ts'
const admission = 'libs/kernel/admission/admit.spec.ts'
const broker = 'libs/kernel/effects/broker.spec.ts'
const ledger = 'test/ports/effect-ledger.spec.ts'
const consent = 'test/ports/memory-consent.spec.ts'
const actions = 'test/story/actions.spec.ts'
const bound = 'test/story/bound-yes.spec.ts'
const lost = 'test/story/owner-lost.spec.ts'
const storyTree = 'test/story/tree.spec.ts'
const story = 'test/story/story.spec.ts'
const taskApprovals = 'test/story/task-approvals.spec.ts'
const taskAttempts = 'test/story/task-attempts.spec.ts'
const taskCandidates = 'test/story/task-candidates.spec.ts'
const taskFollow = 'test/story/task-follow.spec.ts'
const taskRules = 'libs/kernel/tasks/tasks.properties.spec.ts'
const delegated = 'test/story/delegated.spec.ts'
const tree = 'test/invariants/tree.spec.ts'
const atomic = 'test/invariants/atomic.spec.ts'
const evidence = 'test/invariants/evidence.spec.ts'
const kernelRuns = 'test/invariants/kernel-runs.spec.ts'

export const treeInvariants: readonly Clause[] = [
  { id: 'M1', must: 'Regenerating never overwrites a candidate.', tests: { [tree]: ['M1: regenerating never overwrites a candidate'] } },
  { id: 'M2', must: 'Editing what was sent forks.', tests: { [tree]: ['M2: editing what was sent forks'] } },
  {
    id: 'M3',
    must: 'Only canonical results change the character.',
    tests: {
      [tree]: ['M3: only an answer can become true'],
      [consent]: ['refuses a source off the canonical path'],
      'test/ports/memory-extraction.spec.ts': ['takes nothing that rests on no real message'],
    },
  },
  {
    id: 'M4',
    must: 'Switching candidates undoes no canonization.',
    tests: { [tree]: ['M4: what is canonical stays so'], [storyTree]: ['switching does not undo it (M4)'] },
  },
  {
    id: 'M5',
    must: 'A character has one seated run.',
    tests: {
      [tree]: ['M5: one seated run per character'],
      'test/invariants/direct-sql.spec.ts': ['M5: a run keeps its kind, its seat'],
      'test/full/replicas.full.spec.ts': ['two asks for one character at once'],
    },
  },
  {
    id: 'M6',
    must: 'What is said in context comes from ancestors, allowed memories and explicit citations alone.',
    tests: {
      [tree]: ['M6: content comes from ancestors, memories and citations alone'],
      'libs/runtime/prompt/assemble.spec.ts': ['M6: nodes that are not one line of ancestors'],
    },
  },
  {
    id: 'M7',
    must: 'A partial never passes for complete.',
    tests: {
      [tree]: ['M7: a partial never passes for complete'],
      'test/invariants/direct-sql.spec.ts': ['M7: a partial stays one'],
      'test/light/run-death.spec.ts': ['killed in mid-stream'],
      'test/story/streams.spec.ts': ['T8: an error object after 30 words'],
      'test/story/runs.spec.ts': ['of time: a provider that takes too long is left'],
      'test/story/continued.spec.ts': ['is gone on with where it was cut at the length of a reply'],
    },
  },
  {
    id: 'M8',
    must: 'Forbidden stays forbidden.',
    tests: {
      [tree]: ['M8: forbidden stays forbidden'],
      'libs/kernel/gate/forbidden-gate.spec.ts': ['nothing but structure changes a verdict'],
    },
  },
  {
    id: 'M9',
    must: 'State and event are committed together.',
    tests: { [atomic]: ['a mutation whose event cannot be written', 'a run whose event cannot be written'] },
  },
  {
    id: 'M10',
    must: 'What the model saw can be rebuilt, and a tampered reference is found.',
    tests: {
      [tree]: ['M10: what the model saw can be rebuilt'],
      'libs/runtime/projection/rebuild-request.spec.ts': ['replay (M10)'],
      'test/story/runs.spec.ts': ['every sampled context rebuilds'],
    },
  },
  {
    id: 'M.refusal-recorded',
    must: 'An attempt against the tree leaves invariant.refused.',
    tests: { [tree]: ['neither it nor one that is being written can be written into', 'a question’s text cannot be changed'] },
  },
  {
    id: 'M.refusal-own-transaction',
    must: 'That event outlives the attempt, which is rolled back.',
    tests: {
      'test/ports/unit-of-work.spec.ts': ['calls afterRollback with the transaction gone'],
      [tree]: ['a question’s text cannot be changed'],
    },
  },
  {
    id: 'M.sql-refused',
    must: 'Plain SQL against the tree is refused by the database.',
    tests: { [tree]: ['neither it nor one that is being written can be written into', 'fences, tickets and ends never go back'] },
  },
  {
    id: 'M.three-states',
    must: 'Current, adopted and canonical are three states.',
    tests: {
      [storyTree]: ['T1: a regenerated answer is a sibling', 'covers what lies between the nearest canonical message and this one'],
    },
  },
  {
    id: 'M.no-word-no-node',
    must: 'A sprout without a word never becomes a node.',
    tests: { [storyTree]: ['T2: one that is stopped before its first word leaves no trace in the tree'] },
  },
  {
    id: 'M.no-row-deleted',
    must: 'No row is deleted.',
    tests: {
      [tree]: ['neither it nor one that is being written can be written into', 'fences, tickets and ends never go back'],
      'test/invariants/record.spec.ts': ['what the database refuses'],
    },
  },
]

export const actionClauses: readonly Clause[] = [
  {
    id: 'ACT.retry-one-key',
    must: 'A try of an action over the network keeps the action’s key.',
    tests: { [acting]: ['tries again what was never sent, and only that'], [ledger]: ['leaves one effect of twelve submissions at once'] },
  },
  {
    id: 'ACT.canonize-is-commit',
    must: 'Canonizing is the owner’s commit; nothing else canonizes.',
    tests: { [story]: ['what is canonized is remembered'], [kernelRuns]: ['canonizes nothing by itself'] },
  },
  {
    id: 'ACT.denial-observed',
    must: 'A denial becomes an observation with a reason, and the loop goes on.',
    tests: {
      [actions]: ['refuses arguments that do not fit, says so, and goes on'],
      [acting]: ['sends nothing that is forbidden, and goes on'],
    },
  },
  {
    id: 'ACT.constraint-unenforceable',
    must: 'A constraint that cannot be held becomes a denial that is observed.',
    tests: { [broker]: ['does not run what it cannot hold to its constraints'] },
  },
  {
    id: 'ACT.wire-decisions',
    must: 'A decision from outside is checked before anything is filled in: a constrained one must say to what.',
    tests: { [admission]: ['each decision holds the form of a decision'] },
  },
  {
    id: 'ACT.approval-checkpoint',
    must: 'A question suspends with a checkpoint.',
    tests: { [actions]: ['asks first, leaves the seat'], [acting]: ['waits where it must ask'] },
  },
  {
    id: 'ACT.approval-approver',
    must: 'Only the owner answers for a character.',
    tests: { [actions]: ['other owners'], [kernelRuns]: ['lets an admin grant nothing in an owner’s name'] },
  },
  {
    id: 'ACT.approval-arguments',
    must: 'A yes is bound to the effective arguments and to the action.',
    tests: {
      [actions]: ['is bound to what was asked: other arguments'],
      [admission]: ['serve nothing else: same_arguments', 'serve nothing else: same_action'],
    },
  },
  {
    id: 'ACT.approval-versions',
    must: 'A yes is bound to the versions that it was given under.',
    tests: {
      [admission]: ['serve nothing else: same_versions'],
      [bound]: ['gets nothing of what was allowed to the one before it', 'is not what the owner was asked about'],
      [taskApprovals]: ['E5: a yes for one version of a tool sends nothing to the next'],
    },
  },
  {
    id: 'ACT.approval-expiry',
    must: 'A yes that came too late, or was taken back, is a no.',
    tests: {
      [admission]: ['takes silence for a no'],
      [actions]: ['does not happen when the permission went in between'],
      [bound]: ['lets nothing out when its run is back too late', 'lets nothing out that waited for its target for longer'],
    },
  },
  {
    id: 'ACT.approval-again',
    must: 'At resume the action is judged anew.',
    tests: {
      [actions]: ['judged anew (case E2)', 'does not happen when the permission went in between'],
      [admission]: ['do not outlive the permission'],
    },
  },
  {
    id: 'ACT.approval-single-use',
    must: 'A yes serves once.',
    tests: { [admission]: ['serve once'], [ledger]: ['lets a yes serve once'], [actions]: ['a used yes'] },
  },
  {
    id: 'ACT.bind-once',
    must: 'An intent is bound once, by owner, key and the hash of its arguments.',
    tests: { [ledger]: ['binds a key once', 'gives another owner the same key', 'sends nothing that is bound to no version of its tool'] },
  },
  { id: 'ACT.claim-by-lease', must: 'An effect is claimed by a lease.', tests: { [ledger]: ['lets only the newest claim send'] } },
  { id: 'ACT.look-up-first', must: 'The target is asked before anything is sent to it.', tests: { [broker]: ['asks the target first'] } },
  {
    id: 'ACT.look-up-unavailable',
    must: 'Where it cannot be asked, a fresh intent stays pending and nothing that comes after passes it.',
    tests: {
      [broker]: ['leaves pending what the target cannot be asked about'],
      [acting]: ['tries again what was never sent, and only that'],
    },
  },
  {
    id: 'ACT.executing-read-back-only',
    must: 'What was left executing or unknown is only read back.',
    tests: {
      [acting]: ['never sends again what nobody knows the outcome of'],
      [broker]: ['sends nothing that somebody has sent already'],
      [lost]: ['that lasts and of which nobody knows: waits for a person', 'whose target can prove it: read back'],
    },
  },
  {
    id: 'ACT.asked-right-before-dispatch',
    must: 'Cancelling and revocations are looked at right before the send.',
    tests: { [broker]: ['asks once more right before it sends'] },
  },
  {
    id: 'ACT.recover-single-owner',
    must: 'One process at a time takes a run up again.',
    tests: { 'test/ports/seat.spec.ts': ['lets one of two processes take over a run whose owner is gone'] },
  },
  {
    id: 'ACT.recover-from-checkpoint',
    must: 'It goes on from its checkpoint and the events after that.',
    tests: {
      [actions]: ['asks first, leaves the seat, and happens once after the yes'],
      [lost]: [
        'right after the owner’s yes: the yes still serves, once',
        'between its intent and its sending: sent once, by the next owner',
      ],
    },
  },
  {
    id: 'ACT.cancel-waits-for-quiet',
    must: 'Cancelled is said only once nothing is out; effects that happened stay.',
    tests: { [acting]: ['E12: an end that was asked for waits for what is out'] },
  },
  {
    id: 'ACT.cancel-refuses-approval',
    must: 'What was cancelled while it waited is not done, whatever is answered later.',
    tests: {
      [actions]: ['is not done by a run that was cancelled while it waited'],
      'test/story/cancelled-waits.spec.ts': [
        'for its owner’s answer ends it',
        'for an action that is out ends it',
        'ends at once when it is cancelled',
      ],
    },
  },
  {
    id: 'ACT.observation',
    must: 'What a tool brings is attested and scrubbed, and is an observation, no fact.',
    tests: {
      [actions]: ['the character sees what it brought'],
      'test/invariants/scrubbed.spec.ts': ['a secret in what an action brought'],
    },
  },
  {
    id: 'ACT.observation-no-memory',
    must: 'An observation supports a memory only once its answer is accepted; no message, no memory.',
    tests: {
      'test/ports/memory-extraction.spec.ts': ['takes nothing that rests on no real message'],
      [consent]: ['refuses a source off the canonical path, or no source at all'],
    },
  },
  {
    id: 'ACT.evidence',
    must: 'Evidence holds inputs, candidate, effects, policies, approvals, commit, lineage and the proof of the chain.',
    tests: { [evidence]: ['holds question, answer, every event', 'holds for a program that has nothing but the file'] },
  },
]

/** Objects of the control plane: tasks, attempts, completion, adapters. */
export const taskClauses: readonly Clause[] = [
  {
    id: 'TASK.objects',
    must: 'Task, attempt, action, observation, artifact, decision, checkpoint, verification and evidence are objects of their own with their fields.',
    tests: {
      [taskCandidates]: ['is done only when it was verified and its owner committed exactly it'],
      [taskRules]: ['from a checkpoint at any place is the fold from the beginning'],
    },
  },
  {
    id: 'TASK.request-is-not-commit',
    must: 'Who asks for a task and who may commit it are two things.',
    tests: { [taskCandidates]: ['is done only when it was verified and its owner committed exactly it'] },
  },
  {
    id: 'TASK.completion-gate',
    must: 'A candidate is sealed, looked at and verified before a task is finished; what is not verified is repaired within bounds.',
    tests: {
      [taskCandidates]: ['E13: committed but checks empty or false', 'is none while an action is open'],
      [taskRules]: ['passes only where something was checked and all of it holds; repair is bounded'],
      [delegated]: ['mends what a check found within its bound'],
      [taskFollow]: [
        'whose candidate has to be mended is followed, though the process dies',
        'has one candidate, which the next process judges',
        'is judged by one process while that one lives',
      ],
    },
  },
  {
    id: 'TASK.verified-is-not-permission',
    must: 'Verified is no permission: the commit is a person’s.',
    tests: {
      [taskCandidates]: ['is done only when it was verified and its owner committed exactly it'],
      [taskRules]: ['is done only after it was verified and committed'],
    },
  },
  {
    id: 'TASK.independent-work',
    must: 'Parallel work passes an unfinished effect only where it was declared independent.',
    tests: { [taskApprovals]: ['where it was declared independent'], [taskRules]: ['is held up only by what stands before it'] },
  },
  {
    id: 'TASK.cancel',
    must: 'Cancelling marks, stops children, aborts, revokes and reconciles; it is cancelled when all is quiet.',
    tests: {
      [taskCandidates]: ['E12: with an unknown effect it is cancelling until that is reconciled', 'while an action is out: it hears of it'],
      [delegated]: ['is cancelled with its task, also while it waits for a person'],
    },
  },
  {
    id: 'TASK.recover-cancelling',
    must: 'What was being cancelled only goes on being cancelled after a crash.',
    tests: { [taskCandidates]: ['E11: cancel, restart, then approve, submit, complete: all answer cancelled'] },
  },
  {
    id: 'TASK.capabilities',
    must: 'What an adapter can do is compared with what the task needs before it is scheduled; no or unknown goes elsewhere.',
    tests: {
      [taskAttempts]: ['is not started where no runtime can do what the task needs'],
      [taskRules]: ['no and unknown are never scheduled past'],
      [delegated]: ['what it cannot show is never scheduled past'],
    },
  },
  {
    id: 'TASK.evidence',
    must: 'A task’s evidence is handed out whole.',
    tests: {
      [taskCandidates]: ['is done only when it was verified and its owner committed exactly it'],
      [delegated]: ['works with the task’s own tools'],
    },
  },
]
