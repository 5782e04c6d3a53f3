/** A Node process started by a test, spoken to by lines. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface LineProcess {
  readonly pid: number
  /** The next line of its standard output; throws if it ends first. */
  nextLine(): Promise<string>
  /** All lines up to its end. */
  restOfLines(): Promise<string[]>
  send(line: string): void
  /** Ends its standard input and waits for its end. */
  finish(): Promise<number | null>
  /** kill −9, and waits for its end. */
  kill(): Promise<void>
  readonly exit: Promise<number | null>
}

/** Runs a program (a TypeScript or JavaScript file) with the Node that runs the test. */
export function startProgram(file: string, args: readonly string[], flags: readonly string[] = []): LineProcess {
  const child = spawn(process.execPath, [...flags, file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    pid: pidOf(child),
    nextLine: async () => {
      const { done, value } = await lines.next()
      if (done === true) throw new Error(`${file} ended with ${await exit} before it said another line`)
      return value
    },
    restOfLines: async () => {
      const rest: string[] = []
      for (let line = await lines.next(); line.done !== true; line = await lines.next()) rest.push(line.value)
      return rest
    },
    send: (line) => void child.stdin.write(`${line}\n`),
    finish: () => {
      child.stdin.end()
      return exit
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exit
    },
    exit,
  }
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the program could not be started')
  return child.pid
}
