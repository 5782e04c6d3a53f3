import type { Slug } from '#contracts'
import type { PromptEntity } from './entity.ts'

/** Opens each example dialogue, so that nobody takes it for the conversation. */
const EXAMPLE_HEADING = '[Example of how {{char}} talks; not part of this conversation]'

/** A card with more blocks than this gets its last ones sent, or left out, together. */
const MAX_BLOCKS = 200

/** Cuts a card's examples at its `<START>` marks; text before the first mark is a block too. */
export function splitExamples(text: string): string[] {
  const blocks = text
    .split(/<START>/gi)
    .map((block) => block.trim())
    .filter((block) => block !== '')
  if (blocks.length <= MAX_BLOCKS) return blocks
  return [...blocks.slice(0, MAX_BLOCKS - 1), blocks.slice(MAX_BLOCKS - 1).join('\n\n')]
}

/** One entity per example dialogue: whole or not at all. */
export function exampleEntities(text: string, make: (identifier: Slug, text: string) => PromptEntity): PromptEntity[] {
  return splitExamples(text).map((block, index) => make(`example.${index + 1}`, `${EXAMPLE_HEADING}\n${block}`))
}
