/** Public recall sets, read where they lie (LINGTAI_BENCH_DATA); nothing of them is copied into the project. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DIALOGUE_MAX_UNITS } from '#domains/memory/query'

/** One scope of documents, and the questions that are asked in it. */
export type RecallScope = { documents: { id: string; text: string }[]; questions: RecallQuestion[] }
/** What is asked, as the last message and the dialogue before it, and the documents that answer it. */
export type RecallQuestion = { message: string; dialogue: string; relevant: ReadonlySet<string> }
export type RecallSet = { name: string; scopes: RecallScope[] }

const Turn = z.object({ speaker: z.string(), dia_id: z.string(), text: z.string(), blip_caption: z.string().optional() })
const Locomo = z.array(
  z.object({
    conversation: z.record(z.string(), z.unknown()),
    qa: z.array(z.object({ question: z.string(), evidence: z.array(z.string()).optional() })),
  }),
)

/** LoCoMo: each turn is a document, each conversation a scope; a question is asked without any dialogue. */
export function readLocomo(folder: string): RecallSet {
  const conversations = Locomo.parse(JSON.parse(readFileSync(join(folder, 'locomo/locomo-dev5.json'), 'utf8')))
  const scopes = conversations.map(({ conversation, qa }) => {
    const sessions = Object.entries(conversation).flatMap(([key, value]) => (/^session_\d+$/.test(key) ? z.array(Turn).parse(value) : []))
    const documents = sessions.map((turn) => ({
      id: turn.dia_id,
      text: `${turn.speaker}: ${turn.text}${turn.blip_caption === undefined ? '' : ` [image: ${turn.blip_caption}]`}`,
    }))
    const ids = new Set(documents.map((document) => document.id))
    const questions = qa.map(({ question, evidence = [] }) => ({
      message: question,
      dialogue: '',
      // Some lists hold several ids in one string, some hold what is no id: those are skipped.
      relevant: new Set(evidence.flatMap((entry) => entry.split(/[; ]+/)).filter((id) => ids.has(id))),
    }))
    return { documents, questions: questions.filter((question) => question.relevant.size > 0) }
  })
  return { name: 'LoCoMo (English), five conversations', scopes }
}

const Memory = z.record(z.string(), z.object({ event: z.string(), id: z.coerce.string() }))
const Dialogue = z.object({ dialogue: z.array(z.string()), 'test-turn': z.array(z.int()), 'relevant-id': z.array(z.coerce.string()) })

/** MADial-Bench: memories are documents; the question is the dialogue before its first test turn, or its last user turn alone. */
export function readMadial(folder: string, asked: 'message and dialogue' | 'message'): RecallSet {
  const lines = (name: string) =>
    readFileSync(join(folder, 'madial-zh', name), 'utf8')
      .trim()
      .split('\n')
  const documents = lines('memories.jsonl').flatMap((line) =>
    Object.values(Memory.parse(JSON.parse(line))).map(({ id, event }) => ({ id, text: event })),
  )
  const ids = new Set(documents.map((document) => document.id))
  const questions = lines('dialogues-dev.jsonl').map((line) => {
    const { dialogue, 'test-turn': testTurns, 'relevant-id': relevant } = Dialogue.parse(JSON.parse(line))
    const before = dialogue
      .slice(0, testTurns[0])
      .map((turn) => turn.trim())
      .filter((turn) => !/^<[BE]OD>$/.test(turn))
    const spoken = (turn: string) => turn.replace(/^<[^>]+>:/, '').replace(/^"|"$/g, '')
    const last = before.findLast((turn) => !turn.startsWith('<Assistant>')) ?? ''
    return {
      message: spoken(last),
      dialogue: asked === 'message' ? '' : before.map(spoken).join('\n').slice(-DIALOGUE_MAX_UNITS),
      relevant: new Set(relevant.filter((id) => ids.has(id))),
    }
  })
  return { name: `MADial-Bench (Chinese), ${asked}`, scopes: [{ documents, questions }] }
}

/** Share of the relevant documents among the first k, averaged over questions, in percent; one number per k. */
export function recallAt(
  ks: readonly number[],
  answers: readonly { found: readonly ReadonlySet<string>[]; relevant: ReadonlySet<string> }[],
): number[] {
  return ks.map((k) => {
    const shares = answers.map(({ found, relevant }) => {
      const seen = new Set(found.slice(0, k).flatMap((ids) => [...ids]))
      return relevant.intersection(seen).size / relevant.size
    })
    return (100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length
  })
}
