// How set-up speaks: short lines on stderr, and errors that say what to do.

/** A set-up failure that a person can do something about. */
export class SetUpError extends Error {
  /** @param {{ what: string, todo: string, output?: string }} failure what happened, what to do, and the failed program's own output */
  constructor({ what, todo, output = '' }) {
    super(what)
    this.name = 'SetUpError'
    this.todo = todo
    this.output = output
  }
}

/** @param {string} line */
export function say(line) {
  process.stderr.write(`${line}\n`)
}

/** @param {SetUpError} error */
export function explain(error) {
  const output = error.output.trimEnd()
  if (output) say(output.split('\n').slice(-40).join('\n'))
  say(`\nSet-up failed: ${error.message}`)
  say(`What to do: ${error.todo}`)
}
