import { pino } from 'pino'
import type { Logger } from 'pino'

export type { Logger } from 'pino'

/** Standard error: standard output belongs to what a person, or a script that asked for a value, reads. */
const STDERR = 2

/** The process's log: JSON lines with ids, codes and counts, never content or credentials. */
export function createLogger(level: 'info' | 'warn' | 'silent' = 'info'): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      // A safety net under the rule above.
      redact: {
        paths: [
          'authorization',
          'cookie',
          'token',
          'secret',
          'password',
          '*.authorization',
          '*.cookie',
          '*.token',
          '*.secret',
          '*.password',
        ],
        censor: '[secret]',
      },
    },
    pino.destination({ fd: STDERR, sync: true }),
  )
}
