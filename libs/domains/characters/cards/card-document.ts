import { CardError } from './card-error.ts'
import type { Report } from './card-error.ts'
import { readCard } from './card-fields.ts'
import type { CardSpec, NormalisedCard } from './card-types.ts'
import { member, memberObject } from './json-node.ts'
import type { JsonNode, JsonObjectNode } from './json-node.ts'
import { limits } from './limits.ts'
import { parseJson } from './parse-json.ts'

/** A card's JSON, read: its tree, where its fields stand, and what they say. */
export interface CardDocument {
  root: JsonObjectNode
  /** `flat`: the fields stand at the root (V1). */
  layout: 'flat' | 'nested'
  specVersion: CardSpec
  card: NormalisedCard
}

const versions: Readonly<Record<string, { specVersion: CardSpec; expected: string }>> = {
  chara_card_v2: { specVersion: 'v2', expected: '2.0' },
  chara_card_v3: { specVersion: 'v3', expected: '3.0' },
}

/** Reads a card's JSON text. Throws CardError: not_object, missing_name, too_deep, and what `parseJson` throws. */
export function readDocument(source: string, report: Report): CardDocument {
  const root = parseJson(source, { report })
  if (root.kind !== 'object') throw new CardError('not_object', '', 'A card is a JSON object')
  const data = memberObject(root, 'data')
  const specVersion = detectSpec(root, data !== undefined, report)
  if (data === undefined) {
    // an export puts these fields one level lower, and must stay readable
    if (depthOf(root) >= limits.depth) throw new CardError('too_deep', '', `Nested deeper than ${limits.depth - 1} levels`)
    return { root, layout: 'flat', specVersion, card: named(withOldNotes(readCard(root, { path: '', report }), root), root, report) }
  }
  return { root, layout: 'nested', specVersion, card: named(readCard(data, { path: 'data', report }), root, report) }
}

function detectSpec(root: JsonObjectNode, hasData: boolean, report: Report): CardSpec {
  const spec = stringAt(root, 'spec')
  const known = spec === undefined ? undefined : versions[spec]
  if (!hasData) {
    if (member(root, 'spec') !== undefined)
      report.add('data', 'data_missing', 'The card names a version but has no data; its root was read as a V1 card')
    return 'v1'
  }
  if (known === undefined) {
    if (spec === undefined) report.add('spec', 'spec_missing', 'The card does not say its version; it was read as V2')
    else report.add('spec', 'unknown_spec', `Unknown version ${spec.slice(0, 64)}; it was read as V3`)
    return spec === undefined ? 'v2' : 'v3'
  }
  const found = stringAt(root, 'spec_version')
  if (found !== known.expected) {
    report.add(
      'spec_version',
      'unknown_spec_version',
      `Expected ${known.expected}, found ${found?.slice(0, 64) ?? 'no text'}; read as ${known.expected}`,
    )
  }
  return known.specVersion
}

function withOldNotes(card: NormalisedCard, root: JsonObjectNode): NormalisedCard {
  const notes = stringAt(root, 'creatorcomment')
  return card.creatorNotes === '' && notes !== undefined ? { ...card, creatorNotes: notes } : card
}

function named(card: NormalisedCard, root: JsonObjectNode, report: Report): NormalisedCard {
  if (card.name.trim() !== '') return card
  const name = stringAt(root, 'name') ?? ''
  if (name.trim() === '') throw new CardError('missing_name', 'data.name', 'A card needs a name')
  report.add('data.name', 'name_from_root', 'The name was taken from the root of the card')
  return { ...card, name }
}

export function stringAt(node: JsonNode, key: string): string | undefined {
  const found = member(node, key)
  return found?.kind === 'string' ? found.value : undefined
}

function depthOf(node: JsonNode): number {
  const children = node.kind === 'object' ? node.members.map(({ value }) => value) : node.kind === 'array' ? node.items : undefined
  if (children === undefined) return 0
  return 1 + children.reduce((deepest, child) => Math.max(deepest, depthOf(child)), 0)
}
