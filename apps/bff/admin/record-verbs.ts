import type { AdminVerb } from './admin-verbs.ts'
import { UsageError } from './usage-error.ts'

/** Recomputes every chain. */
export const verify: AdminVerb = {
  usage: 'verify   recomputes every chain of the record; fails on a difference',
  run: async ({ system, note }) => {
    const report = await system.conversation.verify.verifyAll()
    for (const { stream, seq, fault } of report.faults) note(`${stream} event ${seq}: ${fault}`)
    const verdict = report.intact ? 'intact' : `${report.faults.length} faults`
    return { value: `${report.streams} chains, ${report.events} events: ${verdict}`, ok: report.intact }
  },
}

const SAMPLE_MAX = 100_000

/** Rebuilds what past runs sent, and takes their commands through the loop again; compares both with the record (M10, K4). */
export const replay: AdminVerb = {
  usage:
    'replay [--sample N]   rebuilds the contexts of N random past runs, repeats their decisions, and compares the bytes; fails on a difference',
  run: async ({ system, note }, { sample = '20' }) => {
    const count = Number(sample)
    if (!Number.isInteger(count) || count < 1 || count > SAMPLE_MAX)
      throw new UsageError(`--sample is a whole number from 1 to ${SAMPLE_MAX}`)
    const { runStore, replays } = system.conversation
    const tally = { identical: 0, erased: 0, different: 0 }
    let otherwise = 0
    const runs = await runStore.sample(count)
    for (const run of runs) {
      const decided = await replays.commands(run)
      if (decided.result === 'different') {
        otherwise += 1
        note(`run ${run.id}, event ${decided.seq}: the command ${decided.tag} is decided otherwise than was recorded`)
      }
      for (const { turn, result } of await replays.everyContext(run)) {
        tally[result] += 1
        if (result === 'different') note(`run ${run.id}, turn ${turn}: the rebuilt context differs from the recorded one`)
      }
    }
    const value = `${runs.length} runs: ${tally.identical} contexts identical, ${tally.erased} with erased parts, ${tally.different} different`
    return {
      value: `${value}; ${runs.length - otherwise} decided the same, ${otherwise} otherwise`,
      ok: tally.different === 0 && otherwise === 0,
    }
  },
}
