import type { Clause } from './matrix.ts'

const loop = 'libs/kernel/reducer/reduce.spec.ts'
const acting = 'libs/kernel/reducer/reduce-actions.spec.ts'
const rules = 'libs/kernel/reducer/recording.spec.ts'
const rebuild = 'libs/runtime/projection/rebuild-request.spec.ts'
const eventLog = 'test/ports/event-log.spec.ts'
const seat = 'test/ports/seat.spec.ts'
const actions = 'test/story/actions.spec.ts'
const runs = 'test/story/runs.spec.ts'
const streams = 'test/story/streams.spec.ts'
const tree = 'test/invariants/tree.spec.ts'
const atomic = 'test/invariants/atomic.spec.ts'
const death = 'test/light/run-death.spec.ts'
const dictionary = 'test/structure/dictionary.spec.ts'
const kernelRecord = 'test/invariants/kernel-record.spec.ts'
const kernelRuns = 'test/invariants/kernel-runs.spec.ts'

export const eventClauses: readonly Clause[] = [
  {
    id: 'EV.envelope',
    must: 'Every event carries stream, number, type, versions, visibility, whose it is, run, trace, actor, trust, time, digests and its chain.',
    tests: {
      [kernelRecord]: ['names run, owner and trace on every event'],
      'test/invariants/versions.spec.ts': ['stands on a run, its commands and its events'],
    },
  },
  {
    id: 'EV.gapless',
    must: 'A stream’s numbers are unique and without a gap.',
    tests: { [eventLog]: ['has no gap and no fork when two processes append', 'refuses a row that does not continue its chain'] },
  },
  {
    id: 'EV.visibility-fixed',
    must: 'Who may read an event is fixed by its type.',
    tests: { [kernelRecord]: ['shows each event to whom its type says'] },
  },
  {
    id: 'EV.no-free-text',
    must: 'Events hold no free text.',
    tests: { [dictionary]: ['run.requested holds ids', 'would notice a free string'] },
  },
  {
    id: 'EV.kinds.seated',
    must: 'Answers and responsive runs take the seat; delegated and maintenance runs do not.',
    tests: {
      [seat]: ['starts runs that need no seat once, beside the seated one'],
      [kernelRuns]: ['seats runs by their kind, and lets nobody say otherwise'],
    },
  },
  {
    id: 'EV.kinds.maintenance',
    must: 'A maintenance run has a stream and a fence of its own and a fixed budget, one for each call of a job.',
    tests: { [kernelRecord]: ['gives each call of a job a stream, a fence and a budget of its own'] },
  },
  {
    id: 'EV.sub-run-names-parent',
    must: 'A sub-run has a stream of its own and names its parent.',
    tests: {
      'test/story/delegation.spec.ts': [
        'is a task in the background whose run has a stream of its own and names its parent',
        'is held by the database too',
      ],
    },
  },
  {
    id: 'EV.run-order',
    must: 'A run’s stream tells its events in the order of the design.',
    tests: { [loop]: ['answers: started, projected, requested'], [kernelRecord]: ['tells a run with actions in order'] },
  },
  {
    id: 'EV.delta-is-fact',
    must: 'What was shown can be read back.',
    tests: {
      'test/story/turn.spec.ts': ['T7: a reader that leaves after an event'],
      [death]: ['the partial is what was shown, the reader resumes'],
    },
  },
]

export const outcomeClauses: readonly Clause[] = [
  {
    id: 'OUT.done',
    must: 'Done is run.finished, of a candidate that is sealed and was looked at.',
    tests: { [loop]: ['answers: started, projected, requested'], 'test/story/turn.spec.ts': ['streams an answer, seals it'] },
  },
  {
    id: 'OUT.waiting-for-approval',
    must: 'A question to the owner suspends the run, which can be resumed.',
    tests: { [actions]: ['asks first, leaves the seat, and happens once after the yes'] },
  },
  {
    id: 'OUT.waiting-for-effect',
    must: 'An effect that somebody else has in hand suspends the run, which can be resumed.',
    tests: { [acting]: ['tries again what was never sent, and only that'] },
  },
  {
    id: 'OUT.waiting-for-user',
    must: 'A question to the user suspends the run, which can be resumed.',
    tests: {
      'test/story/task-waiting.spec.ts': [
        'suspends its run with a checkpoint, and the answer resumes it',
        'is cancelled where it waits, by its task and by its run',
        'is found where it stood after a crash in between',
      ],
    },
  },
  {
    id: 'OUT.reconcile-required',
    must: 'An unknown with consequences suspends the run until it is settled.',
    tests: { [actions]: ['is never sent again and waits for a person'] },
  },
  {
    id: 'OUT.interrupted.cancel',
    must: 'A cancelled run is interrupted, its partial sealed.',
    tests: {
      [loop]: ['M7: a run that is cut off never looks finished'],
      'test/story/tree.spec.ts': ['T2: one that is stopped before its first word'],
    },
  },
  {
    id: 'OUT.interrupted.lease',
    must: 'A run whose lease is over is interrupted, its partial sealed.',
    tests: { [runs]: ['the run ends as lost, with what was said'] },
  },
  {
    id: 'OUT.interrupted.provider',
    must: 'A provider’s error or end in mid-stream interrupts the run, its partial sealed.',
    tests: { [streams]: ['T8: an error object after 30 words', 'without a finish_reason the text is a partial'] },
  },
  {
    id: 'OUT.interrupted.network',
    must: 'A lost connection or a time-out interrupts the run.',
    tests: { [kernelRuns]: ['interrupts a run whose connection is cut'], [runs]: ['of time: a provider that takes too long is left'] },
  },
  {
    id: 'OUT.interrupted.veto',
    must: 'A veto of the answer interrupts the run.',
    tests: {
      [rules]: ['records a veto and ends the run by it'],
      'test/story/listeners.spec.ts': ['to an answer leaves a partial that never looks whole'],
    },
  },
  {
    id: 'OUT.budget-exhausted',
    must: 'A used-up budget interrupts the run and says which one it was.',
    tests: { [runs]: ['of turns: an interjection beyond them'] },
  },
  { id: 'OUT.drained', must: 'A drained run is interrupted as drained.', tests: { [rules]: ['drains under its own name'] } },
  {
    id: 'OUT.failed.stuck',
    must: 'A stuck run fails and is not resumed.',
    tests: { 'test/invariants/task-runs.spec.ts': ['an attempt that is stuck fails'] },
  },
  {
    id: 'OUT.failed.harness',
    must: 'A fault of ours fails the run and is not resumed.',
    tests: { [atomic]: ['at its first word: ends as ours to blame'] },
  },
  {
    id: 'OUT.failed.rebuild',
    must: 'A request that cannot be rebuilt fails the run.',
    tests: { [kernelRuns]: ['fails, loudly, what cannot be rebuilt'] },
  },
  {
    id: 'OUT.failed.overflow',
    must: 'A context that cannot fit fails the run by that name.',
    tests: {
      'libs/runtime/prompt/assemble.spec.ts': ['where the mandatory part alone is too large'],
      [kernelRuns]: ['fails by name what does not fit the window'],
    },
  },
  {
    id: 'OUT.failed.forbidden',
    must: 'A forbidden request fails the run by that name.',
    tests: { [tree]: ['a secret of this instance is never sent'] },
  },
  {
    id: 'OUT.never-looks-finished',
    must: 'What was interrupted or failed never looks finished.',
    tests: { [loop]: ['M7: a run that is cut off never looks finished'], [atomic]: ['is sealed as a partial'] },
  },
]

export const rebuildClauses: readonly Clause[] = [
  {
    id: 'RW.patch-recorded',
    must: 'A rewrite is recorded as a versioned patch before the request.',
    tests: {
      [rebuild]: ['is rebuilt with its patches, in their order', 'shows a patch that was tampered with, lost, or that fits nothing'],
      'libs/runtime/projection/apply-patch.spec.ts': ['replaces, inserts and removes by place, one after another'],
      'test/story/listeners.spec.ts': ['is sent, recorded and rebuilt as they left it', 'is rewritten in jobs, and rebuilt there'],
    },
  },
  {
    id: 'RW.every-model-call',
    must: 'What was sent is rebuilt for every model call: of answers, of each pass with tools, and of jobs.',
    tests: {
      'test/story/turn.spec.ts': ['M10: what was sent is what the record rebuilds'],
      [actions]: ['the record rebuilds it'],
      [kernelRecord]: ['rebuilds the calls of jobs too'],
    },
  },
  {
    id: 'RW.whole-request',
    must: 'The whole request is rebuilt: messages, tools, model, sampling and form of the answer.',
    tests: {
      'libs/runtime/projection/layout-1.spec.ts': ['M10: makes the same body from the same references', 'keeps the bytes of the frame'],
      [rebuild]: ['is identical where nothing changed'],
    },
  },
  {
    id: 'RW.unequal-fails',
    must: 'Where it is not the same, the run fails, loudly.',
    tests: { [kernelRuns]: ['fails, loudly, what cannot be rebuilt'], [rebuild]: ['finds a tampered reference'] },
  },
  {
    id: 'RW.digest-of-parts',
    must: 'The request’s digest is that of the salted digests of its parts in order.',
    tests: {
      [rebuild]: ['does not depend on anything but the parts of the request'],
      'libs/runtime/projection/layout-1.spec.ts': ['makes the same digests'],
    },
  },
  {
    id: 'RW.erasure',
    must: 'An erased part blanks itself alone and is no difference.',
    tests: {
      [rebuild]: ['takes an erased part for no difference and blanks that part only', 'still finds a change beside an erased part'],
    },
  },
]

export const seatClauses: readonly Clause[] = [
  {
    id: 'SEAT.one',
    must: 'A character has one seated run, over trees, devices and replicas.',
    tests: {
      [seat]: ['gives the seat to one run of a character'],
      'test/full/replicas.full.spec.ts': ['two asks for one character at once'],
    },
  },
  {
    id: 'SEAT.order',
    must: 'Others wait in order of arrival and learn their place.',
    tests: { [seat]: ['says how many stand before a run'], 'test/full/replicas.full.spec.ts': ['many asks through both at once'] },
  },
  { id: 'SEAT.bounded', must: 'The line is bounded.', tests: { [runs]: ['is bounded for each owner'] } },
  {
    id: 'SEAT.lease',
    must: 'The seat is held by a lease that signs of life extend.',
    tests: { [seat]: ['keeps the seat while its owner shows signs of life'], [eventLog]: ['extends the lease of the runs that it writes'] },
  },
  {
    id: 'SEAT.expiry',
    must: 'When the lease is over the run is interrupted, its sprout sealed as partial, and the next one starts.',
    tests: { [runs]: ['the run ends as lost, with what was said, and the next one starts'] },
  },
  {
    id: 'SEAT.fence-rises',
    must: 'The fence is never reset.',
    tests: { [seat]: ['hands out fences that only rise'], [tree]: ['fences, tickets and ends never go back'] },
  },
  {
    id: 'SEAT.fence-by-database',
    must: 'The database checks the fence at every append.',
    tests: { [eventLog]: ['leaves out a run that another process took over', 'leaves out a fence that was never given out'] },
  },
  {
    id: 'SEAT.waiting-frees',
    must: 'A run that waits for a person holds no seat and leaves a checkpoint.',
    tests: { [actions]: ['asks first, leaves the seat'] },
  },
  {
    id: 'SEAT.resume-queues',
    must: 'To be resumed it stands in line again.',
    tests: { [kernelRuns]: ['stands in line again to be resumed'] },
  },
  {
    id: 'SEAT.time-out-is-no',
    must: 'Silence until the time is over counts as a no.',
    tests: { [kernelRuns]: ['takes silence for a no'], 'libs/kernel/admission/admit.spec.ts': ['takes silence for a no'] },
  },
  {
    id: 'SEAT.steer-durable',
    must: 'An interjection is durable once accepted.',
    tests: { [runs]: ['Q6: one that was accepted and not used before the stop is in the record'] },
  },
  {
    id: 'SEAT.steer-another-turn',
    must: 'Interjections that wait when a turn ends start another turn before the answer is accepted.',
    tests: {
      [loop]: ['takes interjections in with another turn of the same run'],
      [runs]: ['start another turn that knows what was said'],
    },
  },
  {
    id: 'SEAT.steer-on-path',
    must: 'An interjection is shown where it took effect.',
    tests: { [runs]: ['they stand where they took effect'] },
  },
  {
    id: 'SEAT.cancel',
    must: 'Stopping seals the partial, records it and frees the seat.',
    tests: {
      [loop]: ['M7: a run that is cut off never looks finished'],
      'test/story/tree.spec.ts': ['T5: stopped at word 20 and asked again at once'],
    },
  },
  {
    id: 'SEAT.idempotent',
    must: 'Stopping and interjecting twice do what once does.',
    tests: { [runs]: ['is left by stopping, with what was interjected on record'], [kernelRuns]: ['takes a repeated interjection once'] },
  },
]
