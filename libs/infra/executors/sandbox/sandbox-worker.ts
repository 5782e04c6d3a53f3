/** A thread for one script: it ends with it, and is ended from outside where it does not. */
import { parentPort, workerData } from 'node:worker_threads'
import { runScript } from './run-script.ts'
import type { ScriptEnd, ScriptLimits } from './run-script.ts'

export type SandboxTask = { code: string; limits: ScriptLimits }
export type FromSandbox = { type: 'started' } | ScriptEnd

const tell = (message: FromSandbox): void => parentPort?.postMessage(message)

const { code, limits } = workerData as SandboxTask
tell(await runScript(code, { limits, now: () => performance.now(), onStart: () => tell({ type: 'started' }) }))
