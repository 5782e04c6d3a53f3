import { responseFormatOf } from '#contracts'
import type { DedupeRequest, ExtractionProposal, ExtractionRequest } from '#contracts'
import type { PoolEntry } from './dedupe.ts'
import type { MemoryQuestion } from './ports.ts'

/** What a model is asked, without the caller's bookkeeping. */
export type Question = Pick<MemoryQuestion, 'purpose' | 'messages' | 'responseFormat'>

/** Instructions for extraction. Its sentences are never memories: a proposal that repeats one is an echo (case R14). */
export const EXTRACTION_INSTRUCTIONS = `You keep the long-term memory of a character who talks with a user.
You get a JSON object with messages of one conversation, oldest first, and the user's time zone.
Find what is worth remembering for months, and answer with one JSON object: {"proposals": [...]}.

Rules:
1. Rather propose nothing than noise. Small talk, greetings, moods of the moment and one-off requests are noise. An empty list is a good answer.
2. Each memory stands alone: a reader who never saw the conversation understands it. Name who is meant, use no pronoun without its noun.
3. What belongs together is one memory. What is true independently of each other is two.
4. Write in the language of the message that it comes from.
5. Turn relative dates into calendar dates, from the time of the message that says them.
6. Use what people said in these messages alone. Never these instructions, and nothing that you know from elsewhere.
7. "source_message_ids" lists the ids of the messages that it rests on: at least one, each exactly as given.
8. "type": preference (likes, habits), event (something that happened), plan (something intended), fact (a lasting property), promise (somebody committed to something), relationship_view (how the character sees the relation; subjective).
9. "event_at": for an event or a plan the date or time that it is about, in ISO form; null where there is none.
10. "priority" and "confidence" are numbers from 0 to 1.
11. "sensitive" is true for health, money, identity, sexuality, belief, other people, and whatever a person would not want spread.`

/** Instructions for dedupe; never memories either. */
export const DEDUPE_INSTRUCTIONS = `You keep the long-term memory of a character free of repetition.
You get a JSON object with new proposals, each with its index, and a pool of memories that are there already.
Decide for every proposal, and answer with one JSON object: {"decisions": [...]}, one decision per index.

Actions:
- store: it is new. Things that are both true side by side are new, also when they are alike.
- skip: a memory of the pool already says it. Name that memory in target_ids.
- update: it takes the place of one memory about the same subject and the same attribute, because that has changed. Name exactly one in target_ids.
- merge: it and the named memories are one thing told in parts. Name them in target_ids and write the whole in "content", losing nothing.

When in doubt, store. Use ids of the pool alone. Write "content" in the language of the memories.`

export function extractionQuestion(request: ExtractionRequest): Question {
  return {
    purpose: 'extraction',
    messages: [
      { role: 'system', content: EXTRACTION_INSTRUCTIONS },
      { role: 'user', content: JSON.stringify(request) },
    ],
    responseFormat: responseFormatOf('memory_extraction').json_schema,
  }
}

export function dedupeQuestion(proposals: readonly Pick<ExtractionProposal, 'content' | 'type'>[], pool: readonly PoolEntry[]): Question {
  const request: DedupeRequest = {
    proposals: proposals.map(({ content, type }, index) => ({ index, content, type })),
    pool: pool.map(({ memoryId, text, type }) => ({ id: memoryId, content: text, type })),
  }
  return {
    purpose: 'dedupe',
    messages: [
      { role: 'system', content: DEDUPE_INSTRUCTIONS },
      { role: 'user', content: JSON.stringify(request) },
    ],
    responseFormat: responseFormatOf('memory_dedupe').json_schema,
  }
}

/** The same question once more, with the bad answer and what is wrong with it. */
export function secondTry(question: Question, answer: string, problems: readonly string[]): Question {
  const list = problems.slice(0, 20).map((problem) => `- ${problem}`)
  return {
    ...question,
    messages: [
      ...question.messages,
      { role: 'assistant', content: answer.slice(0, 8_000).toWellFormed() },
      {
        role: 'user',
        content: `This answer cannot be used:\n${list.join('\n')}\nAnswer again with the whole corrected JSON object and nothing else.`,
      },
    ],
  }
}
