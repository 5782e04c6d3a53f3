import type { SecretBox, ToolSourceRow, ToolSourceStore } from './ports.ts'

/** Bound to their owner and source: moved to another row they open no more. */
export const headersContext = ({ id, owner_id: ownerId }: Pick<ToolSourceRow, 'id' | 'owner_id'>): string => `tool_source:${ownerId}:${id}`

/** The headers of a source in the clear; null where they cannot be read any more. */
export async function openHeaders(
  { store, secrets }: { store: Pick<ToolSourceStore, 'headers'>; secrets: SecretBox },
  source: Pick<ToolSourceRow, 'id' | 'owner_id'>,
): Promise<Readonly<Record<string, string>> | null> {
  const sealed = await store.headers(source.owner_id, source.id)
  if (!sealed) return {}
  const text = await secrets.open(sealed, headersContext(source))
  return text === null ? null : (JSON.parse(text) as Record<string, string>)
}
