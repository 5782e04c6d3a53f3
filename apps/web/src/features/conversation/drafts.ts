import type { CitationInput } from '#contracts'
import { readPersisted, usePersisted, writePersisted } from '../../store/persisted.ts'

/** A passage that the next question will cite, with the words it shows. */
export type DraftCitation = CitationInput & { text: string; whole: boolean }
export type Draft = { text: string; citations: DraftCitation[] }

const empty: Draft = { text: '', citations: [] }
const keyOf = (treeId: string) => `draft.${treeId}`

function parse(stored: string | null): Draft {
  return stored === null ? empty : { ...empty, ...(JSON.parse(stored) as Partial<Draft>) }
}

function write(treeId: string, draft: Draft): void {
  writePersisted('session', keyOf(treeId), draft.text === '' && draft.citations.length === 0 ? null : JSON.stringify(draft))
}

/** What is being written in a conversation; it outlives reloads and sign-outs of this tab. */
export function useDraft(treeId: string): [Draft, (draft: Draft) => void] {
  const [stored] = usePersisted('session', keyOf(treeId))
  return [parse(stored), (draft) => write(treeId, draft)]
}

export function addCitation(treeId: string, citation: DraftCitation): void {
  const draft = parse(readPersisted('session', keyOf(treeId)))
  const same = draft.citations.some(
    (other) => other.node_id === citation.node_id && other.from === citation.from && other.to === citation.to,
  )
  if (!same) write(treeId, { ...draft, citations: [...draft.citations, citation] })
}

/** Puts words back that could not be sent, before what was typed since. */
export function restoreText(treeId: string, text: string): void {
  const draft = parse(readPersisted('session', keyOf(treeId)))
  if (draft.text.includes(text)) return
  write(treeId, { ...draft, text: draft.text === '' ? text : `${text}\n${draft.text}` })
}
