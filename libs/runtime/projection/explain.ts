import type { Explanation, Id, RecordedEntity } from '#contracts'
import type { Projected, Rebuilt } from './rebuild-request.ts'

const byIdentifier: ReadonlyMap<string, string> = new Map([
  ['system_contract', 'Rules of the system'],
  ['main', 'Main prompt'],
  ['user_persona', 'About you'],
  ['description', 'Character description'],
  ['personality', 'Personality'],
  ['scenario', 'Scenario'],
  ['depth_prompt', "Character's note"],
  ['post_history', 'Post-history instructions'],
  ['memory.heading', 'Heading of the memories'],
  ['citation.heading', 'Heading of the quotes'],
  ['question', 'Your message'],
])

const byPrefix: readonly (readonly [string, string])[] = [
  ['history', 'Conversation'],
  ['partial.', 'Interrupted answer'],
  ['example.', 'Example dialogue'],
  ['memory.', 'Memory'],
  ['citation.', 'Quoted passage'],
]

const bySource: Record<RecordedEntity['source'], string> = {
  system_contract: 'Rules of the system',
  persona_anchor: 'Character',
  regulation: 'Present disposition',
  world: 'World note',
  trace: 'Trace',
  memory: 'Memory',
  citation: 'Quoted passage',
  owner_instruction: 'Your interjection',
  guidance: 'Guidance',
  conversation: 'Answer so far',
  summary: 'Summary of earlier messages',
  tool_schema: 'Tools',
}

/** What an entity is, for people. */
export function labelOf({ identifier, source }: Pick<RecordedEntity, 'identifier' | 'source'>): string {
  return byIdentifier.get(identifier) ?? byPrefix.find(([prefix]) => identifier.startsWith(prefix))?.[1] ?? bySource[source]
}

/** How many messages of the path an entity of the conversation stands for: from its first node to the next entity's, within one piece. */
function countNodes(entities: readonly RecordedEntity[], ranges: readonly (readonly Id[])[]): Map<RecordedEntity, number> {
  const starts = new Set(entities.map((entity) => entity.source_id))
  const counts = new Map<RecordedEntity, number>()
  for (const entity of entities) {
    if (entity.source !== 'conversation' && entity.source !== 'owner_instruction') continue
    for (const range of ranges) {
      const from = entity.source_id === null ? -1 : range.indexOf(entity.source_id)
      if (from === -1) continue
      let to = from + 1
      while (to < range.length && !starts.has(range[to] ?? null)) to += 1
      counts.set(entity, to - from)
    }
  }
  return counts
}

type Explained = Pick<Explanation, 'entities' | 'dropped' | 'messages' | 'tokens' | 'tokenizer' | 'trust' | 'recall_audit_id'>

/**
 * The recorded projection in words: each entity with its label and text, what was left out and why, the messages as rebuilt. `textOf` answers
 * null where the reader may not see a text or it is erased. Shows the stored event; runs no assembler (spec/3).
 */
export function explainProjection(input: { projected: Projected; rebuilt: Rebuilt; textOf(contentId: Id): string | null }): Explained {
  const { projected, rebuilt, textOf } = input
  const nodes = countNodes(projected.entities, rebuilt.ranges)
  return {
    entities: projected.entities.map((entity) => {
      const count = nodes.get(entity)
      const text = entity.content_id === null ? null : textOf(entity.content_id)
      return { ...entity, text, label: labelOf(entity), ...(count === undefined ? {} : { nodes: count }) }
    }),
    dropped: projected.dropped.map((one) => ({ ...one, label: labelOf(one) })),
    messages: rebuilt.messages.map(({ role, content }) => ({ role, text: content })),
    tokens: projected.tokens,
    tokenizer: projected.tokenizer,
    trust: projected.trust,
    recall_audit_id: projected.recall_audit_id,
  }
}
