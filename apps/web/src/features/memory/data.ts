import { useEffect } from 'react'
import type { MemoryView } from '#contracts'
import { memoryApi } from '../../api/endpoints.ts'
import { toast } from '../../parts/toasts.tsx'
import type { Resource } from '../../store/resource.ts'
import { invalidate, useResource } from '../../store/resource.ts'
import type { Words } from '../../words/en.ts'

/** How often memories are looked for while nobody looks at them, and while somebody does. */
export const restingInterval = 30_000
export const watchedInterval = 4000
const watchInterval = 2000
const watchTries = 45
const inboxLimit = 100

export type Inbox = { proposed: MemoryView[]; automatic: MemoryView[] }

async function readInbox(characterId: string | null): Promise<Inbox> {
  const [proposed, live] = await Promise.all([
    memoryApi.list({ state: 'proposed', character_id: characterId, limit: inboxLimit }),
    memoryApi.list({ state: 'live', character_id: characterId, limit: inboxLimit }),
  ])
  const now = Date.now()
  return {
    proposed: proposed.items,
    automatic: live.items.filter((memory) => memory.undo_until !== null && new Date(memory.undo_until).getTime() > now),
  }
}

/** What waits for the owner, and what was kept by itself and can still be undone. */
export function useInbox(characterId: string | null): Resource<Inbox> {
  return useResource(`inbox:${characterId ?? 'all'}`, () => readInbox(characterId))
}

/** How many proposals wait, over all characters. */
export function useInboxCount(): number {
  return useInbox(null).data?.proposed.length ?? 0
}

/** Memories come from jobs: looks again now and then while the page is seen. */
export function useInboxWatch(milliseconds: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') invalidate('inbox:')
    }, milliseconds)
    return () => clearInterval(timer)
  }, [milliseconds])
}

/** Everything that shows memories reads them again. */
export function memoriesChanged(): void {
  invalidate('inbox:', 'memories:', 'memory:')
}

/** After a canonization: waits for what the extraction brings, and says so once. Ends by itself. */
export async function watchForMemories(input: { characterId: string; name: string; words: Words; open: () => void }): Promise<void> {
  const before = await readInbox(input.characterId)
  const known = new Set([...before.proposed, ...before.automatic].map((memory) => memory.id))
  for (let attempt = 0; attempt < watchTries; attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, watchInterval))
    if (document.visibilityState !== 'visible') continue
    const now = await readInbox(input.characterId)
    const proposed = now.proposed.filter((memory) => !known.has(memory.id)).length
    const automatic = now.automatic.filter((memory) => !known.has(memory.id)).length
    if (proposed + automatic === 0) continue
    memoriesChanged()
    const text = proposed > 0 ? input.words.memory.wants(input.name, proposed) : input.words.memory.remembered(input.name, automatic)
    toast({ text, action: { label: input.words.memory.openInbox, act: input.open } })
    return
  }
}
