import type { ConversationUnit } from './conversation-units.ts'
import { HISTORY_RANK } from './entity.ts'
import type { PreparedEntity } from './prepare-entities.ts'

/** One thing in sent order. */
export type Placed = { kind: 'entity'; prepared: PreparedEntity } | { kind: 'unit'; unit: ConversationUnit; below: number }

type At<K extends 'relative' | 'in_chat'> = { prepared: PreparedEntity; position: Extract<PreparedEntity['entity']['position'], { at: K }> }

function split(entities: readonly PreparedEntity[]): { relative: At<'relative'>[]; inChat: At<'in_chat'>[] } {
  const relative: At<'relative'>[] = []
  const inChat: At<'in_chat'>[] = []
  for (const prepared of entities) {
    const { position } = prepared.entity
    if (position.at === 'relative') relative.push({ prepared, position })
    else inChat.push({ prepared, position })
  }
  // Sorting is stable: ties keep the list's order, and a role moves nothing.
  relative.sort((left, right) => left.position.rank - right.position.rank)
  // Deeper first, so that what lies deeper than the chat still stands in order before its first message.
  inChat.sort((left, right) => right.position.depth - left.position.depth || left.position.order - right.position.order)
  return { relative, inChat }
}

/**
 * Puts what is sent in order: relative entities by rank around the conversation; in-chat ones at their depth, counted in real conversation
 * messages from the tail (0 = after the last; deeper than the chat = just before its first), at one depth by order (spec/3).
 */
export function place(entities: readonly PreparedEntity[], units: readonly ConversationUnit[]): Placed[] {
  const { relative, inChat } = split(entities)
  const placed: Placed[] = []
  const put = (prepared: PreparedEntity): void => {
    placed.push({ kind: 'entity', prepared })
  }
  for (const { prepared, position } of relative) if (position.rank < HISTORY_RANK) put(prepared)
  let next = 0
  for (let at = 0; at <= units.length; at++) {
    for (let one = inChat[next]; one && Math.max(0, units.length - one.position.depth) <= at; one = inChat[next]) {
      put(one.prepared)
      next += 1
    }
    const unit = units[at]
    if (unit) placed.push({ kind: 'unit', unit, below: units.length - at - 1 })
  }
  for (const { prepared, position } of relative) if (position.rank >= HISTORY_RANK) put(prepared)
  return placed
}
