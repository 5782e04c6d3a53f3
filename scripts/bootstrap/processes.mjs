// Child processes that end with us, and ourselves ending with the process that started us.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { root } from './paths.mjs'

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP']
const graceMs = 10_000

/**
 * Runs a program to its end, hands SIGINT, SIGTERM and SIGHUP on to it, and answers with the exit code (128 + signal number if a
 * signal ended it). With `capture` it is a set-up step: stdout and stderr are gathered instead of shown, and a signal ends all at once.
 * @param {{ command: string, args: string[], env?: NodeJS.ProcessEnv, cwd?: string, capture?: boolean }} options
 * @returns {Promise<{ code: number, output: string }>}
 */
export function run({ command, args, env = process.env, cwd = root, capture = false }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: capture ? ['ignore', 'pipe', 'pipe', 2] : 'inherit' })
    let output = ''
    const gather = (chunk) => (output += chunk)
    child.stdout?.setEncoding('utf8').on('data', gather)
    child.stderr?.setEncoding('utf8').on('data', gather)
    let stoppedBy
    const listeners = forwarded.map((signal) => {
      const listener = () => {
        stoppedBy = signal
        // Ctrl-C reaches the child from the terminal itself; a second one would mean "at once".
        if (signal === 'SIGINT' && process.stdin.isTTY && !capture) return
        // A set-up step is safe to cut short and may not listen (npm does not); a command of the person's ends in its own way.
        child.kill(capture ? 'SIGKILL' : signal)
      }
      process.on(signal, listener)
      return () => process.off(signal, listener)
    })
    const stopForwarding = () => listeners.forEach((off) => off())
    child.on('error', (error) => {
      stopForwarding()
      reject(error)
    })
    child.on('close', (code, signal) => {
      stopForwarding()
      // A step that a signal ended ends the command as well: it must not go on half set up.
      if (capture && stoppedBy) process.exit(128 + constants.signals[stoppedBy])
      resolve({ code: code ?? 128 + constants.signals[signal ?? 'SIGKILL'], output })
    })
  })
}

/**
 * Ends this process when its parent is gone, so that `kill -9` of the parent leaves nothing behind: SIGTERM first, so that an orderly
 * shutdown can run, SIGKILL if that takes longer than ten seconds. Only where the parent is ours (the Node wrapper, named in
 * LINGTAI_PARENT) or npm: a server started from a shell outlives that shell when asked to.
 */
export function stopWithParent() {
  const named = Number(process.env.LINGTAI_PARENT)
  delete process.env.LINGTAI_PARENT
  if (!named && !process.env.npm_lifecycle_event) return
  watchParent(named || process.ppid, () => {
    process.kill(process.pid, 'SIGTERM')
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), graceMs).unref()
  })
}

/**
 * @param {number} parent the pid that should stay our parent
 * @param {() => void} onGone called once
 */
export function watchParent(parent, onGone) {
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    onGone()
  }, 250)
  timer.unref()
}
