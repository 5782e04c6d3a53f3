import { useEffectEvent, useMemo, useState } from 'react'
import type { NodeView, RunAccepted } from '#contracts'
import { ApiProblem } from '../../api/client.ts'
import { nodeApi, runApi, treeApi } from '../../api/endpoints.ts'
import { toast, toastProblem } from '../../parts/toasts.tsx'
import { navigate, paths } from '../../routing/router.tsx'
import { invalidate } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'
import { openDrawer } from '../frame/drawer.tsx'
import { memoriesChanged, watchForMemories } from '../memory/data.ts'
import { addCitation } from './drafts.ts'
import { selectedPassage, wholeMessage } from './selection.ts'
import type { PathHandle } from './use-path.ts'

/** What the buttons and keys of a message do. The object stays the same, so that messages need no drawing again. */
export type MessageCommands = {
  adopt: (nodeId: string) => void
  regenerate: (node: NodeView) => void
  /** Has an answer gone on with that ended before it was done. */
  goOn: (runId: string) => void
  edit: (node: NodeView | null) => void
  submitEdit: (node: NodeView, text: string) => Promise<void>
  fork: (node: NodeView) => void
  cite: (node: NodeView) => void
  canonize: (node: NodeView) => void
  withdraw: (node: NodeView) => void
  explain: (node: NodeView) => void
  remove: (node: NodeView) => void
}

export type Asked = { kind: 'withdraw'; canonizationId: string } | { kind: 'delete'; node: NodeView; canonical: boolean }

type CommandsInput = {
  treeId: string
  characterId: string | null
  characterName: string
  handle: PathHandle
  /** A run was accepted: it is followed from here on. */
  onRun: (accepted: RunAccepted) => void
}

export function useCommands({ treeId, characterId, characterName, handle, onRun }: CommandsInput) {
  const words = useWords()
  const [editingId, setEditingId] = useState<string | null>(null)
  const [freshSealId, setFreshSealId] = useState<string | null>(null)
  const [asked, setAsked] = useState<Asked | null>(null)
  const [busy, setBusy] = useState(false)

  /** The tree has changed: its end or all that is shown of it is read again; from an aside one comes back to the present path. */
  const changed = async (everywhere: boolean) => {
    invalidate('trees:', `outline:${treeId}`, `canon:${treeId}`)
    if (window.location.pathname !== paths.tree(treeId)) navigate(paths.tree(treeId) + window.location.search, { replace: true })
    await (everywhere ? handle.reload() : handle.reloadEnd())
  }

  const act = async (action: () => Promise<void>) => {
    setBusy(true)
    try {
      await action()
    } catch (problem) {
      toastProblem(problem)
      // A refusal often means that the tree has moved on elsewhere.
      if (problem instanceof ApiProblem && problem.problem.status === 409) await handle.reload()
    } finally {
      setBusy(false)
    }
  }

  const adopt = useEffectEvent((nodeId: string) => {
    void act(async () => {
      await nodeApi.adopt(nodeId)
      await changed(false)
    })
  })

  const regenerate = useEffectEvent((node: NodeView) => {
    void act(async () => onRun(await nodeApi.regenerate(node.id)))
  })

  const goOn = useEffectEvent((runId: string) => {
    void act(async () => onRun(await runApi.goOn(runId)))
  })

  const submitEdit = useEffectEvent(async (node: NodeView, text: string) => {
    const edited = await nodeApi.edit(node.id, text)
    if (edited.run === null) await changed(false)
    else {
      handle.append(edited.node)
      onRun(edited.run)
    }
  })

  const fork = useEffectEvent((node: NodeView) => {
    void act(async () => {
      await nodeApi.fork(node.id)
      await changed(false)
      toast({ text: words.talk.forked, action: { label: words.frame.map, act: () => openDrawer('map') } })
      document.querySelector<HTMLTextAreaElement>('[data-composer]')?.focus()
    })
  })

  const cite = useEffectEvent((node: NodeView) => {
    const element = document.querySelector(`[data-node-id="${node.id}"]`)
    const passage = (element === null ? null : selectedPassage(element, node)) ?? wholeMessage(node)
    if (passage === null) return
    addCitation(treeId, passage)
    document.getSelection()?.removeAllRanges()
    document.querySelector<HTMLTextAreaElement>('[data-composer]')?.focus()
  })

  const canonize = useEffectEvent((node: NodeView) => {
    if (node.partial || node.canonical) return
    void act(async () => {
      const { canonization, warnings } = await nodeApi.canonize(node.id)
      setFreshSealId(node.id)
      await changed(true)
      toast({
        text: warnings.length > 0 ? `${words.talk.canonized} ${words.talk.canonDiverges}` : words.talk.canonized,
        action: { label: words.common.undo, act: () => setAsked({ kind: 'withdraw', canonizationId: canonization.id }) },
      })
      if (characterId !== null) {
        void watchForMemories({ characterId, name: characterName, words, open: () => openDrawer('memory') }).catch(toastProblem)
      }
    })
  })

  const withdraw = useEffectEvent((node: NodeView) => {
    void act(async () => {
      const shown = handle.path?.nodes ?? []
      const at = shown.findIndex((other) => other.id === node.id)
      const { items } = await treeApi.canonizations(treeId)
      const standing = items.filter((canonization) => canonization.withdrawn_at === null)
      // The seal that covers this message ends at it or at the next sealed place below it.
      const covering = standing
        .map((canonization) => ({ id: canonization.id, end: shown.findIndex((other) => other.id === canonization.to_node_id) }))
        .filter(({ end }) => end >= at)
        .sort((a, b) => a.end - b.end)[0]
      const found = covering?.id ?? standing.find((canonization) => canonization.to_node_id === node.id)?.id
      if (found !== undefined) setAsked({ kind: 'withdraw', canonizationId: found })
    })
  })

  const commands = useMemo<MessageCommands>(
    () => ({
      adopt: (nodeId) => adopt(nodeId),
      regenerate: (node) => regenerate(node),
      goOn: (runId) => goOn(runId),
      edit: (node) => setEditingId(node?.id ?? null),
      submitEdit: (node, text) => submitEdit(node, text),
      fork: (node) => fork(node),
      cite: (node) => cite(node),
      canonize: (node) => canonize(node),
      withdraw: (node) => withdraw(node),
      explain: (node) => openDrawer('why', { run: node.run_id }),
      remove: (node) => setAsked({ kind: 'delete', node, canonical: node.canonical }),
    }),
    [],
  )

  const confirmAsked = async (question: Asked) => {
    if (question.kind === 'withdraw') {
      await treeApi.withdraw(question.canonizationId)
      toast({ text: words.talk.withdrawn })
    } else {
      await nodeApi.remove(question.node.id, question.canonical)
    }
    memoriesChanged()
    await changed(true)
  }

  return { commands, editingId, freshSealId, asked, setAsked, confirmAsked, busy, changed }
}
