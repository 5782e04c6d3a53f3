import { useRef, useState } from 'react'
import type { ImportedLorebook } from '#contracts'
import { characterApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { invalidate, useResource } from '../../store/resource.ts'
import { useFormat, useWords } from '../../words/words.ts'

/** The lorebooks that belong to a character, and the way to bring one. */
export function Lorebooks({ characterId }: { characterId: string }) {
  const words = useWords()
  const format = useFormat()
  const books = useResource('lorebooks', characterApi.lorebooks)
  const input = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState<unknown>(null)
  const [report, setReport] = useState<ImportedLorebook['report']>([])
  const bring = async (file: File) => {
    setProblem(null)
    try {
      const imported = await characterApi.importLorebook(file, characterId)
      setReport(imported.report)
      invalidate('lorebooks', `character:${characterId}`)
    } catch (error) {
      setProblem(error)
    }
  }
  const own = (books.data?.items ?? []).filter((book) => book.character_id === characterId)
  return (
    <section>
      <div className="section-head">
        <h2>{words.characters.lorebooks}</h2>
        <Button look="quiet" icon="import" onClick={() => input.current?.click()}>
          {words.characters.importLore}
        </Button>
      </div>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={words.characters.importLore}
        accept=".json,application/json"
        onChange={(event) => {
          const file = event.target.files?.[0]
          event.target.value = ''
          if (file !== undefined) void bring(file)
        }}
      />
      {own.length === 0 && <p className="faint">{words.characters.loreNone}</p>}
      <ul className="plain-list">
        {own.map((book) => (
          <li key={book.id}>
            {book.name} <span className="faint">{words.characters.loreEntries(format.number(book.entries))}</span>
          </li>
        ))}
      </ul>
      {report.length > 0 && (
        <ul className="report">
          {report.map((entry) => (
            <li key={`${entry.path} ${entry.code}`}>
              <code>{entry.path}</code> {entry.message}
            </li>
          ))}
        </ul>
      )}
      {problem !== null && <ProblemNote problem={problem} />}
    </section>
  )
}
