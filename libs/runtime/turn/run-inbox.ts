import type { ContentStore } from '#kernel/ports/content-store'
import type { RunStore } from '#kernel/ports/run-store'
import type { RunCommand } from '#kernel/reducer/commands'
import type { RunSoFar } from './run-so-far.ts'

/** Channel that tells a run's owner that a command was accepted. */
export function commandChannel(runId: string): string {
  return `run-commands.${runId}`
}

export type RunInboxDeps = {
  runId: string
  runs: RunStore
  contents: ContentStore
  soFar: RunSoFar
  submit(command: RunCommand): void
  cancel(): void
}

/** What is accepted for a run while it is driven: each command is taken in once (decision 16). */
export class RunInbox {
  readonly #deps: RunInboxDeps
  readonly #seen = new Set<string>()

  constructor(deps: RunInboxDeps) {
    this.#deps = deps
  }

  /** Takes in what was accepted and not seen yet. */
  async poll(): Promise<void> {
    const { runId, runs, contents, soFar, submit, cancel } = this.#deps
    const open = (await runs.openCommands(runId)).filter((command) => !this.#seen.has(command.id))
    const found = await contents.get(open.flatMap((command) => command.content_id ?? []))
    for (const command of open) {
      // Another look may have taken it in while this one waited for the texts.
      if (this.#seen.has(command.id)) continue
      this.#seen.add(command.id)
      if (command.kind === 'cancel') cancel()
      else if (command.kind !== 'steer') submit({ tag: 'unknown' })
      const content = command.content_id === null ? undefined : found.get(command.content_id)
      if (command.kind !== 'steer' || !content) continue
      soFar.keepText(content.id, content.body ?? '')
      submit({ tag: 'steer', command_id: command.id, content_id: content.id, digest: Buffer.from(content.digest).toString('hex') })
    }
  }
}
