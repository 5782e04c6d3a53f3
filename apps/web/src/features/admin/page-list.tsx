import type { ReactNode } from 'react'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { useWords } from '../../words/words.ts'
import type { Pages } from './use-pages.ts'

/** A table read page by page, with its empty, loading and failed states. */
export function PageTable<T>({
  pages,
  head,
  empty,
  children,
}: {
  pages: Pages<T>
  head: readonly string[]
  empty: ReactNode
  children: (items: T[]) => ReactNode
}) {
  const words = useWords().common
  if (pages.items === null) return pages.problem === null ? <Loading /> : <ProblemNote problem={pages.problem} onRetry={pages.reload} />
  if (pages.items.length === 0) return <>{empty}</>
  return (
    <>
      <div className="table-scroll" tabIndex={0}>
        <table className="table">
          <thead>
            <tr>
              {head.map((label) => (
                <th key={label} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children(pages.items)}</tbody>
        </table>
      </div>
      {pages.problem !== null && <ProblemNote problem={pages.problem} onRetry={pages.reload} />}
      {pages.next !== null && (
        <Button busy={pages.loading} onClick={pages.more}>
          {words.loadMore}
        </Button>
      )}
    </>
  )
}
