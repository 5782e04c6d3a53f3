import { ApiProblem, Unreachable } from '../api/client.ts'
import { testIds } from '../test-ids.ts'
import type { ErrorWords } from '../words/errors-en.ts'
import type { Words } from '../words/en.ts'
import { useErrorWords, useWords } from '../words/words.ts'
import { Button } from './button.tsx'

export type ProblemText = {
  title: string
  action: string
  fields: readonly { path: string; message: string }[]
  detail: string | null
  trace: string | null
}

/** A problem in the reader's language: what happened, what was kept, what to do. */
export function describeProblem(problem: unknown, words: Words, errorWords: ErrorWords): ProblemText {
  if (problem instanceof ApiProblem) {
    const known = errorWords[problem.code] as ErrorWords[keyof ErrorWords] | undefined // a newer server may know more codes
    return {
      title: known?.title ?? problem.problem.title,
      action: known?.action ?? problem.problem.action,
      fields: problem.problem.errors ?? [],
      detail: problem.problem.detail === problem.problem.title ? null : problem.problem.detail,
      trace: problem.problem.trace_id === '' ? null : problem.problem.trace_id,
    }
  }
  if (problem instanceof Unreachable)
    return { title: words.problem.unreachable, action: words.problem.unreachableAction, fields: [], detail: null, trace: null }
  return {
    title: words.problem.unknown,
    action: words.problem.unknownAction,
    fields: [],
    detail: problem instanceof Error ? problem.message : null,
    trace: null,
  }
}

export function useProblemText(): (problem: unknown) => ProblemText {
  const words = useWords()
  const errorWords = useErrorWords()
  return (problem) => describeProblem(problem, words, errorWords)
}

export function ProblemNote({ problem, onRetry, title }: { problem: unknown; onRetry?: () => void; title?: string }) {
  const words = useWords()
  const text = useProblemText()(problem)
  return (
    <div className="problem" role="alert" data-testid={testIds.problem}>
      <p className="problem-title">{title === undefined ? text.title : `${title}: ${text.title}`}</p>
      <p>{text.action}</p>
      {text.detail !== null && <p className="problem-detail">{text.detail}</p>}
      {text.fields.length > 0 && (
        <ul className="problem-fields">
          {text.fields.map((field) => (
            <li key={`${field.path} ${field.message}`}>
              <code>{field.path}</code> {field.message}
            </li>
          ))}
        </ul>
      )}
      {text.trace !== null && <p className="problem-trace">{words.problem.trace(text.trace)}</p>}
      {onRetry !== undefined && <Button onClick={onRetry}>{words.common.tryAgain}</Button>}
    </div>
  )
}
