import { Socket } from 'node:net'

/**
 * A socket that sends what was written in one turn of the event loop together: statements that are pipelined in one turn cost one system
 * call and not one each. Writing is otherwise as ever; nothing waits for longer than the turn that wrote it.
 */
export class TurnSocket extends Socket {
  #isHeld = false

  override cork(): void {
    if (this.#isHeld) return
    this.#isHeld = true
    super.cork()
    process.nextTick(() => {
      this.#isHeld = false
      super.uncork()
    })
  }

  /** The end of the turn uncorks. */
  override uncork(): void {}
}
