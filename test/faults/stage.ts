/** Where rounds are played: two replicas, the provider, the world outside, and an API of its own that no kill reaches, to look by. */
import { setTimeout as pause } from 'node:timers/promises'
import type { CharacterView, GrantView, SetGrant, ToolSourceView, TreeView } from '#contracts'
import { startHttpServer } from '../../apps/bff/http/server.ts'
import type { HttpServer } from '../../apps/bff/http/server.ts'
import { call } from '../support/story.ts'
import { callUrl } from '../support/replica.ts'
import type { CallAnswer } from '../support/system.ts'
import { startTwoReplicas } from '../support/two-replicas.ts'
import type { TwoReplicas } from '../support/two-replicas.ts'
import { startOutside } from './outside.ts'
import type { Outside } from './outside.ts'
import type { ToolName } from './plan.ts'
import { FaultProvider } from './provider.ts'

/** How long one call may try to find a replica that answers. Milliseconds. */
const PATIENCE_MS = 30_000

const unhurried = { owner: { perSecond: 1e5, burst: 1e6 }, stranger: { perSecond: 1e5, burst: 1e6 } }
const everyClass: SetGrant['classes'] = ['read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external']

/** An owner's view: `look` by the API that is always there, `act` by the replicas. */
export type Person = {
  token: string
  look<Answer>(method: string, path: string, body?: unknown): Promise<Answer>
  /** Asks `via`, and then the other, until one answers; the same `key` all along. A refusal (4xx) is an answer. */
  act(input: { via: number; path: string; body?: unknown; key: string; answered?: (via: number) => void }): Promise<CallAnswer>
}

/** An owner with characters that may do all that the world outside offers, and a tree for each ask. */
export type Household = { person: Person; ownerId: string; characterIds: string[]; sourceName: string }

export class Stage {
  readonly two: TwoReplicas
  readonly provider: FaultProvider
  readonly outside: Outside
  readonly #api: HttpServer

  constructor(parts: { two: TwoReplicas; provider: FaultProvider; outside: Outside; api: HttpServer }) {
    this.two = parts.two
    this.provider = parts.provider
    this.outside = parts.outside
    this.#api = parts.api
  }

  get observer() {
    return this.two.observer
  }

  /** Where a reader that no kill reaches can follow streams. */
  get apiUrl(): string {
    return this.#api.url
  }

  person(token: string): Person {
    const at =
      (url: string) =>
      (method: string, path: string, options = {}) =>
        callUrl({ url: url + path, method, token, ...options })
    const look = { call: at(this.#api.url) }
    return {
      token,
      look: (method, path, body) => call(look, method, path, body),
      act: async ({ via, path, body, key, answered }) => {
        const until = Date.now() + PATIENCE_MS
        for (let place = via; ; place = 1 - place) {
          try {
            const replica = this.two.processAt(place)
            const answer = await at(replica.baseUrl)('POST', path, { body, headers: { 'idempotency-key': key } })
            if (answer.status < 500 && answer.status !== 429) {
              answered?.(place)
              return answer
            }
            if (Date.now() > until) throw new Error(`POST ${path} answers ${answer.status}: ${answer.text}`)
          } catch (error) {
            // The replica died under the call, or is not there yet: the other one is asked the same.
            if (Date.now() > until) throw error
          }
          await pause(50)
        }
      },
    }
  }

  async household(name: string, characters: number): Promise<Household> {
    const token = await this.two.newOwner(['read', 'write', 'approve'])
    const person = this.person(token)
    const { owner } = await person.look<{ owner: { id: string } }>('GET', '/v1/session')
    const { items } = await person.look<{ items: CharacterView[] }>('GET', '/v1/characters')
    const more = await Promise.all(
      Array.from({ length: characters - items.length }, (_, index) =>
        person.look<CharacterView>('POST', '/v1/characters', { name: `Keeper ${index}`, description: 'Keeps lamps.' }),
      ),
    )
    const characterIds = [...items, ...more].map(({ id }) => id)
    const source = await person.look<ToolSourceView>('POST', '/v1/tool-sources', { name, http: { tools: this.#tools() } })
    const accepted = source.tools.map(({ name: tool, version }) => ({ name: tool, version }))
    await person.look('POST', `/v1/tool-sources/${source.id}/accept`, { tools: accepted })
    const tools = accepted.map(({ name: tool }) => tool)
    for (const [path, given] of [
      ['/v1/grant', null],
      ...characterIds.map((id) => [`/v1/characters/${id}/grant`, tools] as const),
    ] as const) {
      const { version } = await person.look<GrantView>('GET', path)
      await person.look('PUT', path, { mode: 'default', classes: everyClass, tools: given, exact: null, version })
    }
    return { person, ownerId: owner.id, characterIds, sourceName: name }
  }

  #tools() {
    const { host } = this.outside
    const parameters = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false }
    const sends = (name: ToolName, lookUp: boolean) => ({
      name,
      description: 'Sends something.',
      method: 'POST',
      url: `http://${host}/${name}`,
      parameters,
      ...(lookUp ? { look_up_url: `http://${host}/${name}/{key}` } : {}),
    })
    return [
      { name: 'look', description: 'Looks something up.', method: 'GET', url: `http://${host}/look/{text}`, parameters },
      sends('keyed', true),
      sends('shy', true),
      sends('plain', false),
    ]
  }

  newTree({ person, characterIds }: Household, character: number): Promise<TreeView> {
    return person.look<TreeView>('POST', '/v1/trees', { character_id: characterIds[character], zone: 'UTC' })
  }

  /** Which place runs a run, as the database has it; undefined where it is nobody's. */
  async placeOf(runId: string): Promise<number | undefined> {
    const holder = (await this.observer.conversation.runStore.get(runId))?.holder ?? ''
    const place = [0, 1].find((index) => holder.includes(`:${this.two.processAt(index).pid}:`))
    return place
  }

  async close(): Promise<void> {
    await this.#api.close()
    await this.two.close()
    await this.outside.close()
  }
}

export async function openStage(): Promise<Stage> {
  const outside = await startOutside()
  const provider = new FaultProvider()
  const two = await startTwoReplicas({ role: 'all', answers: provider.answer, environment: { LINGTAI_TOOL_HOSTS: outside.host } })
  const api = await startHttpServer(two.observer, { checksAnswers: true, limits: unhurried })
  await Promise.all([two.revive(0), two.revive(1)])
  return new Stage({ two, provider, outside, api })
}
