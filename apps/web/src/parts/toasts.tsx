import { useSyncExternalStore } from 'react'
import { randomKey } from '../api/client.ts'
import { testIds } from '../test-ids.ts'
import { useWords } from '../words/words.ts'
import { Button, IconButton } from './button.tsx'
import { useProblemText } from './problem-note.tsx'

type ToastContent = { text: string; problem?: undefined } | { text?: undefined; problem: unknown }
export type Toast = ToastContent & { action?: { label: string; testId?: string; act: () => void } }

type Shown = Toast & { id: string }
const lifeMilliseconds = 4000
const lifeWithActionMilliseconds = 10_000
let shown: readonly Shown[] = []
const listeners = new Set<() => void>()

function set(next: readonly Shown[]): void {
  shown = next
  listeners.forEach((listener) => listener())
}

function dismiss(id: string): void {
  set(shown.filter((entry) => entry.id !== id))
}

/** Says something for some seconds at the edge of the page. A problem stays until it is dismissed. */
export function toast(content: Toast): void {
  const id = randomKey()
  set([...shown.slice(-2), { ...content, id }])
  if (content.problem === undefined)
    setTimeout(() => dismiss(id), content.action === undefined ? lifeMilliseconds : lifeWithActionMilliseconds)
}

/** For a call whose only place to fail visibly is a toast. */
export function toastProblem(problem: unknown): void {
  toast({ problem })
}

export function Toasts() {
  const words = useWords()
  const problemText = useProblemText()
  const toasts = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => shown,
  )
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map((entry) => {
        const problem = entry.problem === undefined ? null : problemText(entry.problem)
        return (
          <div key={entry.id} className={problem === null ? 'toast' : 'toast toast-problem'} data-testid={testIds.toast}>
            <p>{problem === null ? entry.text : `${problem.title}. ${problem.action}`}</p>
            {entry.action !== undefined && (
              <Button
                look="quiet"
                testId={entry.action.testId}
                onClick={() => {
                  entry.action?.act()
                  dismiss(entry.id)
                }}
              >
                {entry.action.label}
              </Button>
            )}
            <IconButton icon="close" label={words.common.dismiss} onClick={() => dismiss(entry.id)} />
          </div>
        )
      })}
    </div>
  )
}
