/** The provider of the fault suite: it says what the plan of the ask says that it is asked about, whoever asks and however often. */
import { setTimeout as pause } from 'node:timers/promises'
import { deltaChunk, DONE, finishChunk, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeStep } from '../support/fake-upstream.ts'
import { proposed } from '../support/memory-world.ts'
import { placeOf } from '../support/two-replicas.ts'
import type { Moments } from './moments.ts'
import type { AskPlan } from './plan.ts'

type Message = { role: string; content: string | null }
type Body = { messages: Message[]; response_format?: unknown }
type Known = { ask: AskPlan; moments: Moments; sourceName: string }

const marker = /<(r\d+a\d+)>/
export const marked = (id: string): string => `Say it, please. <${id}>`
/** What is to be remembered of an ask, each unlike the others. */
export const memoryOf = (id: string): string => `The user keeps a lamp that is called ${id}.`

export class FaultProvider {
  readonly #known = new Map<string, Known>()
  /** The replica that asked last about an ask: where its run is at home. */
  readonly places = new Map<string, number>()

  know(ask: AskPlan, moments: Moments, sourceName: string): void {
    this.#known.set(ask.id, { ask, moments, sourceName })
  }

  readonly answer = (request: FakeRequest): FakeResponse => {
    const body = JSON.parse(request.bodyText) as Body
    const place = placeOf(request)
    return body.response_format === undefined ? this.#speak(body, place) : this.#remember(body, place)
  }

  #speak({ messages }: Body, place: number): FakeResponse {
    const at = messages.findLastIndex(({ role, content }) => role === 'user' && marker.test(content ?? ''))
    const known = this.#known.get(marker.exec(messages[at]?.content ?? '')?.[1] ?? '')
    if (!known) return { status: 500, steps: ['{"error":{"message":"nobody planned this"}}'] }
    const { ask, moments, sourceName } = known
    this.places.set(ask.id, place)
    moments.saw({ name: 'asked', place })
    const turn = ask.turns[turnOf(ask, messages.slice(at + 1).filter(({ role }) => role === 'tool').length)]
    if (!turn) return { status: 500, steps: ['{"error":{"message":"there is no such turn"}}'] }
    const spoken = turn.pieces.flatMap(({ text, pauseMs }): FakeStep[] => [
      step(() => pause(pauseMs)),
      textChunk(text),
      step(() => moments.saw({ name: 'piece', place })),
    ])
    const calls = turn.calls.map(({ tool, text }, index) =>
      deltaChunk({
        tool_calls: [
          {
            index,
            id: `call_${index}`,
            type: 'function',
            function: { name: `http_${sourceName}_${tool}`, arguments: JSON.stringify({ text }) },
          },
        ],
      }),
    )
    return { steps: [...spoken, ...calls, finishChunk(calls.length > 0 ? 'tool_calls' : 'stop'), usageChunk(40, 8), DONE] }
  }

  /** Finds one thing to remember in what is canonical, and takes it for new. */
  #remember({ messages }: Body, place: number): FakeResponse {
    const question = JSON.parse(messages[1]?.content ?? '{}') as { messages?: { id: string }[]; proposals?: unknown[] }
    const said = (text: string, moments?: Moments): FakeResponse => ({
      steps: [
        step(() => moments?.saw({ name: 'extracting', place })),
        textChunk(text.slice(0, 9)),
        step(() => pause(20)),
        textChunk(text.slice(9)),
        finishChunk(),
        usageChunk(1, 1),
        DONE,
        step(() => moments?.saw({ name: 'extracted', place })),
      ],
    })
    if (!question.messages) {
      const decisions = (question.proposals ?? []).map((_, index) => ({ index, action: 'store', target_ids: [] }))
      return said(JSON.stringify({ decisions }))
    }
    const shown = question.messages.find((message) => marker.test(JSON.stringify(message)))
    const id = marker.exec(JSON.stringify(shown ?? {}))?.[1] ?? ''
    const proposal = { content: memoryOf(id), type: 'fact' as const }
    return said(JSON.stringify(shown ? proposed(shown.id, proposal) : { proposals: [] }), this.#known.get(id)?.moments)
  }
}

/** Which turn it is after so many results of calls. */
function turnOf(ask: AskPlan, results: number): number {
  let before = 0
  for (const [index, { calls }] of ask.turns.entries()) {
    if (results <= before) return index
    before += calls.length
  }
  return ask.turns.length - 1
}

/** A step that is taken when its turn comes. */
function step(work: () => Promise<unknown> | void): FakeStep {
  return {
    get opened() {
      return Promise.resolve(work()).then(() => undefined)
    },
    open: () => undefined,
  }
}
