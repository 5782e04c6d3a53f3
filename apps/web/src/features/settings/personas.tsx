import { useState } from 'react'
import { sessionApi } from '../../api/endpoints.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Loading } from '../../parts/small.tsx'
import { invalidate, useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'

/** How characters know the owner. */
export function Personas() {
  const words = useWords().settings
  const personas = useResource('personas', sessionApi.personas)
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const add = async () => {
    setBusy(true)
    setProblem(null)
    try {
      await sessionApi.createPersona(name.trim(), description)
      setName('')
      setDescription('')
      invalidate('personas')
    } catch (error) {
      setProblem(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <section>
      <h2>{words.personas}</h2>
      <p className="faint">{words.personasText}</p>
      {personas.data === undefined ? (
        personas.problem === null ? (
          <Loading />
        ) : (
          <ProblemNote problem={personas.problem} onRetry={personas.reload} />
        )
      ) : null}
      {personas.data?.items.length === 0 && <p>{words.personasEmpty}</p>}
      <ul className="plain-list">
        {personas.data?.items.map((persona) => (
          <li key={persona.id}>
            <strong>{persona.name}</strong> <span className="faint">{persona.description}</span>
          </li>
        ))}
      </ul>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void add()
        }}
      >
        <label className="field">
          <span className="field-label">{words.personaName}</span>
          <input value={name} maxLength={120} onChange={(event) => setName(event.target.value)} />
        </label>
        <label className="field">
          <span className="field-label">{words.personaDescription}</span>
          <textarea rows={3} value={description} onChange={(event) => setDescription(event.target.value)} />
        </label>
        {problem !== null && <ProblemNote problem={problem} />}
        <Button type="submit" busy={busy} disabled={name.trim() === ''}>
          {words.addPersona}
        </Button>
      </form>
    </section>
  )
}
