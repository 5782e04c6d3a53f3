import type { Id } from '#contracts'

/** What must be sent is larger than the window leaves: run.failed{context_overflow}. Tokens include each message's envelope. */
export class ContextOverflowError extends Error {
  readonly available: number
  readonly needed: number
  readonly tokensPerEntity: readonly { identifier: string; tokens: number }[]

  constructor(input: { available: number; tokensPerEntity: readonly { identifier: string; tokens: number }[] }) {
    const needed = input.tokensPerEntity.reduce((sum, { tokens }) => sum + tokens, 0)
    super(`the mandatory part of the prompt needs ${needed} tokens, ${input.available} are available`)
    this.name = 'ContextOverflowError'
    this.available = input.available
    this.needed = needed
    this.tokensPerEntity = input.tokensPerEntity
  }
}

/** There is nothing to answer: no message of the user on the path, nor an instruction in the user's role where there is no path. */
export class MissingUserMessageError extends Error {
  constructor() {
    super('the prompt holds no message of the user')
    this.name = 'MissingUserMessageError'
  }
}

/** The conversation handed over is not one line of ancestors (M6). */
export class NotAncestorsError extends Error {
  readonly nodeId: Id
  readonly expectedParentId: Id
  readonly parentId: Id | null

  constructor(input: { nodeId: Id; expectedParentId: Id; parentId: Id | null }) {
    super(`node ${input.nodeId} does not follow ${input.expectedParentId} on the path`)
    this.name = 'NotAncestorsError'
    this.nodeId = input.nodeId
    this.expectedParentId = input.expectedParentId
    this.parentId = input.parentId
  }
}

/** A node has text to send and no content that it could be recorded by (M10). */
export class UnreferencedTextError extends Error {
  readonly nodeId: Id

  constructor(nodeId: Id) {
    super(`node ${nodeId} has text and no content reference`)
    this.name = 'UnreferencedTextError'
    this.nodeId = nodeId
  }
}
