import { secondTry } from './extraction-prompt.ts'
import type { Question } from './extraction-prompt.ts'
import type { ExtractionBatch } from './extraction-batch.ts'
import type { ReadAnswer } from './extraction-answer.ts'
import { lowerTrust } from './memory-change.ts'
import type { CanonicalRange, MemoryModel } from './ports.ts'

/** A question's usable answer with its content, or none after two tries; with the last run and how often the model was asked. */
export type Asked<T> = { ok: true; value: T; runId: string; contentId: string; asked: number } | { ok: false; runId: string; asked: number }

/** What a question is about. `madeOf`: contents that it shows beside the batch's messages. */
export type Subject = { range: CanonicalRange; batch: ExtractionBatch; signal: AbortSignal | undefined; madeOf: readonly string[] }

/** The model could not be reached, or its run failed. */
export class ModelUnreachableError extends Error {
  constructor(cause: unknown) {
    super('the model that writes memories could not be asked', { cause })
    this.name = 'ModelUnreachableError'
  }
}

/**
 * Asks once, and once more with the validator's words where the answer is no good. `read` is told when it is the last try, so that it may
 * then take what is good of a mixed answer. Throws ModelUnreachableError.
 */
export async function askTwice<T>(
  model: MemoryModel,
  about: Subject,
  question: Question,
  read: (text: string, isLast: boolean) => ReadAnswer<T>,
): Promise<Asked<T>> {
  const { range, batch, signal, madeOf } = about
  const ask = async (asked: Question, before: readonly string[]) => {
    try {
      return await model.ask({
        ...asked,
        ownerId: range.owner_id,
        characterId: range.character_id,
        treeId: range.tree_id,
        canonizationId: range.canonization_id,
        derivedFrom: [...new Set([...batch.sources.map((source) => source.content_id), ...madeOf, ...before])],
        trust: lowerTrust(batch.sources.map((source) => source.trust)),
        ...(signal === undefined ? {} : { signal }),
      })
    } catch (error) {
      throw new ModelUnreachableError(error)
    }
  }
  const first = await ask(question, [])
  const reading = read(first.text, false)
  if (reading.ok) return { ok: true, value: reading.value, runId: first.runId, contentId: first.contentId, asked: 1 }
  const second = await ask(secondTry(question, first.text, reading.problems), [first.contentId])
  const again = read(second.text, true)
  if (!again.ok) return { ok: false, runId: second.runId, asked: 2 }
  return { ok: true, value: again.value, runId: second.runId, contentId: second.contentId, asked: 2 }
}
