/** Programs that a benchmark starts, measures and ends. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export type Child = {
  pid: number
  process: ChildProcess
  /** The first line of its standard output that matches. */ line: RegExpExecArray
  end(): Promise<void>
}

/** Starts a file with this Node and waits for a line; throws where it ends before it. */
export async function startChild(options: {
  file: string
  args?: readonly string[]
  flags?: readonly string[]
  environment?: Record<string, string>
  readyLine: RegExp
}): Promise<Child> {
  const child = spawn(process.execPath, [...(options.flags ?? []), options.file, ...(options.args ?? [])], {
    env: { PATH: '/usr/bin:/bin', ...options.environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  const lines = createInterface({ input: child.stdout })
  let line: RegExpExecArray | null = null
  for await (const text of lines) {
    line = options.readyLine.exec(text)
    if (line) break
  }
  if (!line || child.pid === undefined) throw new Error(`${options.file} ended before it was ready`)
  child.stdout.resume()
  return {
    pid: child.pid,
    process: child,
    line,
    end: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}
