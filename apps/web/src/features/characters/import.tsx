import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import type { ImportedCharacter } from '#contracts'
import { characterApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { navigate, paths } from '../../routing/router.tsx'
import { readPersisted, writePersisted } from '../../store/persisted.ts'
import { invalidate, put } from '../../store/resource.ts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'

type ImportValue = { choose: () => void; busy: boolean }
const ImportContext = createContext<ImportValue | null>(null)

export type ImportNote = Pick<ImportedCharacter, 'format' | 'spec_version' | 'report'>

/** What the import of a character found, as long as this tab lives. */
export function importNoteOf(characterId: string): ImportNote | null {
  const stored = readPersisted('session', `import.${characterId}`)
  return stored === null ? null : (JSON.parse(stored) as ImportNote)
}

function mediaTypeOf(file: File): string {
  if (file.type === 'image/png' || file.name.toLowerCase().endsWith('.png')) return 'image/png'
  if (file.type === 'application/json' || file.name.toLowerCase().endsWith('.json')) return 'application/json'
  return 'application/octet-stream'
}

/** Cards come in by the button or by being dropped anywhere on the page. */
export function ImportProvider({ children }: { children: ReactNode }) {
  const words = useWords()
  const input = useRef<HTMLInputElement>(null)
  const [fileName, setFileName] = useState<string | null>(null)
  const [failure, setFailure] = useState<{ name: string; problem: unknown } | null>(null)

  const bring = useCallback(async (file: File) => {
    setFileName(file.name)
    setFailure(null)
    try {
      const { character, ...note } = await characterApi.importCard(file, mediaTypeOf(file))
      writePersisted('session', `import.${character.id}`, JSON.stringify(note))
      put(`character:${character.id}`, character)
      invalidate('characters')
      navigate(paths.character(character.id))
    } catch (problem) {
      setFailure({ name: file.name, problem })
    } finally {
      setFileName(null)
    }
  }, [])

  const dragging = useFileDrop(bring)
  const value = useMemo<ImportValue>(() => ({ choose: () => input.current?.click(), busy: fileName !== null }), [fileName])

  return (
    <ImportContext value={value}>
      {children}
      <input
        ref={input}
        type="file"
        hidden
        aria-label={words.characters.importCard}
        accept=".json,.png,application/json,image/png"
        data-testid={testIds.importFile}
        onChange={(event) => {
          const file = event.target.files?.[0]
          event.target.value = ''
          if (file !== undefined) void bring(file)
        }}
      />
      {(dragging || fileName !== null) && (
        <div className="drop-veil" role="status">
          <div className="drop-card">
            <p className="drop-title">{fileName === null ? words.characters.dropTitle : words.characters.importing(fileName)}</p>
            <p>{words.characters.dropText}</p>
          </div>
        </div>
      )}
      {failure !== null && (
        <Dialog title={words.characters.importFailed(failure.name)} onClose={() => setFailure(null)}>
          <ProblemNote problem={failure.problem} />
          <div className="dialog-actions">
            <Button look="quiet" onClick={() => setFailure(null)}>
              {words.common.close}
            </Button>
            <Button
              look="strong"
              onClick={() => {
                setFailure(null)
                input.current?.click()
              }}
            >
              {words.characters.importCard}
            </Button>
          </div>
        </Dialog>
      )}
    </ImportContext>
  )
}

export function useImport(): ImportValue {
  const value = useContext(ImportContext)
  if (value === null) throw new Error('ImportProvider is missing')
  return value
}

/** Whether files are being dragged over the page; a drop hands over the first one. */
function useFileDrop(take: (file: File) => Promise<void>): boolean {
  const [dragging, setDragging] = useState(false)
  useEffect(() => {
    let depth = 0
    const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true
    const enter = (event: DragEvent) => {
      if (!holdsFiles(event)) return
      depth += 1
      setDragging(true)
    }
    const over = (event: DragEvent) => {
      if (holdsFiles(event)) event.preventDefault()
    }
    const leave = (event: DragEvent) => {
      if (!holdsFiles(event)) return
      depth = Math.max(0, depth - 1)
      if (depth === 0) setDragging(false)
    }
    const drop = (event: DragEvent) => {
      if (!holdsFiles(event)) return
      event.preventDefault()
      depth = 0
      setDragging(false)
      const file = event.dataTransfer?.files[0]
      if (file !== undefined) void take(file)
    }
    window.addEventListener('dragenter', enter)
    window.addEventListener('dragover', over)
    window.addEventListener('dragleave', leave)
    window.addEventListener('drop', drop)
    return () => {
      window.removeEventListener('dragenter', enter)
      window.removeEventListener('dragover', over)
      window.removeEventListener('dragleave', leave)
      window.removeEventListener('drop', drop)
    }
  }, [take])
  return dragging
}
