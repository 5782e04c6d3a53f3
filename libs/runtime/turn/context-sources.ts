import type { NodePart, NodeRole, Trust } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { PersonaSource, UserPersonaSource } from '../prompt/persona-entities.ts'
import type { RecalledMemory } from '../prompt/recall-entities.ts'

/** A node as the projection needs it; `digest` is computed afresh from what is stored now. Body null = deleted or erased. */
export type SourceNode = {
  node_id: string
  parent_id: string | null
  tree_id: string
  owner_id: string
  role: NodeRole
  parts: readonly NodePart[]
  content_id: string | null
  digest: string | null
  trust: Trust
  /** A greeting is a piece of its card, and is believed as the card is: more, once its owner has accepted it (K1). */
  isGreeting: boolean
  partial: boolean
  deleted: boolean
}

export type SourceCitation = { citationId: string; contentId: string; trust: Trust }

/** Where a run stands: what its prompts are made of besides the conversation. */
export type PromptPlace = {
  treeId: string
  realm: { id: string; kind: string }
  zone: string
  persona: PersonaSource
  user: UserPersonaSource
}

export type RecallAnswer = { memories: RecalledMemory[]; auditId: string | null; facts: { contentId: string; realm: string }[] }

/** What is asked for, and the contents that it was taken from: its digest's salt goes with any of them (decision 10). */
export type RecallQueries = { question: string; dialogue: string; contentIds: readonly string[] }

/** The only three sources of conversational content — ancestors, allowed memories, explicit citations — and the standing ones (M6, spec/2). */
export interface ContextSources {
  /** The persona version to pin when the run starts. */
  currentPersona(run: RunRow): Promise<string>
  place(run: RunRow, personaVersionId: string): Promise<PromptPlace>
  /** The path down to a node, oldest first, as far back as `tokens` reach at most. */
  conversation(run: RunRow, leafId: string, tokens: number): Promise<SourceNode[]>
  /** All nodes from one down to another on their path, deleted ones and those of a deleted tree too; null when they are not on one path. */
  range(ownerId: string, fromNodeId: string, toNodeId: string): Promise<SourceNode[] | null>
  citations(questionId: string): Promise<SourceCitation[]>
  recall(input: { run: RunRow; realmId: string; queries: RecallQueries }): Promise<RecallAnswer>
  /** Minutes east of UTC of a zone at a time (decision 42). */
  utcOffsetMinutes(zone: string, at: Date): number
}
