import type { Id, Slug } from '#contracts'
import { meetTrust } from '#contracts'
import type { ContentRef, PromptEntity } from './entity.ts'

/** A layer's wish to replace an entity's text: a card's system prompt, a tree's setting. */
export type PromptOverride = {
  /** Who replaces, as recorded. */
  by: Slug
  /** `''` removes the target; white space alone, or nothing, is no override. `{{original}}` stands once for what is replaced. */
  text: string | null | undefined
  sourceId: Id | null
  contentRef: ContentRef | null
  derivedFrom: readonly Id[]
  trust: PromptEntity['trust']
}

export type Overridden = { entity: PromptEntity; replacedBy: Slug[]; refused: Slug[] }

const ORIGINAL = /\{\{\s*original\s*\}\}/gi

const contentIdsOf = (entity: PromptEntity): Id[] => [...(entity.contentRef ? [entity.contentRef.content_id] : []), ...entity.derivedFrom]

function replace(target: PromptEntity, override: PromptOverride, text: string): PromptEntity {
  let seen = 0
  // A function, so that `$&` in the original stays what it is; the inserted text is not searched again.
  const replaced = text.replace(ORIGINAL, () => (seen++ === 0 ? target.text : ''))
  const ownIds = [...(override.contentRef ? [override.contentRef.content_id] : []), ...override.derivedFrom]
  const quoted = seen > 0
  return {
    ...target,
    text: replaced,
    expand: !quoted || target.expand,
    sourceId: override.sourceId,
    contentRef: quoted ? null : override.contentRef,
    derivedFrom: quoted ? [...new Set([...ownIds, ...contentIdsOf(target)])] : override.derivedFrom,
    trust: quoted ? meetTrust([override.trust, target.trust]) : override.trust,
    reason: 'override',
    overriddenBy: override.by,
  }
}

/**
 * Lays overrides on an entity, each on the result of the one before (spec/3). A `forbidOverride` entity stays as it is and the attempts are
 * answered as refused. A removed entity keeps its place with no text: the assembler leaves it out and records who removed it.
 */
export function applyOverrides(base: PromptEntity, overrides: readonly PromptOverride[]): Overridden {
  const result: Overridden = { entity: base, replacedBy: [], refused: [] }
  for (const override of overrides) {
    const { text } = override
    if (text === null || text === undefined || (text !== '' && text.trim() === '')) continue
    if (base.forbidOverride) {
      result.refused.push(override.by)
      continue
    }
    result.entity = replace(result.entity, override, text)
    result.replacedBy.push(override.by)
  }
  return result
}
