import { z } from 'zod'
import type { Clock } from '#kernel/ports/clock'
import { builtinTool, done, jsonObservation } from '../builtin/builtin-tool.ts'
import type { BuiltinTool } from '../builtin/builtin-tool.ts'
import { failed } from '../observation.ts'
import type { Sandbox } from './sandbox.ts'

/** Longest script, in UTF-16 units. */
const CODE_MAX_UNITS = 64_000

/**
 * `sandbox.javascript`: runs a script that can reach nothing. What it computes is as far trusted as what it was written from. Codes:
 * `script_threw`, `time_limit`, `memory_limit`, `output_limit`, `promise_never_settled`, `busy`, `aborted`, `thread_broke`.
 */
export function sandboxTool({ sandbox, clock }: { sandbox: Pick<Sandbox, 'run'>; clock: Clock }): BuiltinTool {
  const name = 'sandbox.javascript'
  return builtinTool({
    name,
    description:
      'Runs JavaScript and answers with what it printed (console.log) and the value of its last statement. There is no network, no file, no module and no timer; it has 5 seconds and 64 MB.',
    arguments: z.strictObject({ code: z.string().min(1).max(CODE_MAX_UNITS) }),
    capability: 'code_executing',
    act: async ({ arguments: { code }, signal, trust = 'untrusted' }) => {
      const end = await sandbox.run(code, signal)
      if (typeof end === 'string') return failed(end)
      const { type, output, result, truncated } = end
      const observation = { ...jsonObservation({ tool: name, value: { output, result }, clock, trust }), truncated }
      if (type === 'finished') return done(observation)
      const codes = { threw: 'script_threw', unsettled: 'promise_never_settled' } as const
      return { type: 'failed', code: type === 'threw' || type === 'unsettled' ? codes[type] : type, observation }
    },
  })
}
