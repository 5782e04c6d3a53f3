/** CPU time of processes on Linux, from /proc. Elsewhere there is no figure. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** The kernel counts in these, and tells user space so whatever its own tick is. */
const TICKS_PER_SECOND = 100

type Stat = { parent: number; own: number; withEndedChildren: number }

function statOf(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [parent = 0, user = 0, system = 0, childUser = 0, childSystem = 0] = [1, 11, 12, 13, 14].map((index) => fields[index] ?? 0)
    return { parent, own: user + system, withEndedChildren: user + system + childUser + childSystem }
  } catch {
    return null // The process has ended.
  }
}

/** CPU milliseconds of one process with all its threads, NaN where that cannot be known. */
export function cpuMsOf(pid: number): number {
  return ((statOf(pid)?.own ?? Number.NaN) * 1000) / TICKS_PER_SECOND
}

/** CPU milliseconds of a process, its children that ended and those that live: a database server with its backends. */
export function cpuMsOfFamily(pid: number): number {
  const root = statOf(pid)
  if (!root || !existsSync('/proc')) return Number.NaN
  let ticks = root.withEndedChildren
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : null
    if (stat?.parent === pid) ticks += stat.own
  }
  return (ticks * 1000) / TICKS_PER_SECOND
}

export function parentOf(pid: number): number {
  return statOf(pid)?.parent ?? 0
}
