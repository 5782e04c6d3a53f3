import { Dialog } from '../../parts/dialog.tsx'
import { useWords } from '../../words/words.ts'

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const { keys } = useWords()
  const rows: [string[], string][] = [
    [['←', '→'], keys.candidates],
    [['R'], keys.regenerate],
    [['E'], keys.edit],
    [['F'], keys.fork],
    [['C'], keys.canonize],
    [['Q'], keys.cite],
    [['W'], keys.why],
    [['M'], keys.map],
    [['Esc'], keys.stop],
    [['/'], keys.search],
    [['?'], keys.all],
    [['Enter'], keys.send],
    [['Shift', 'Enter'], keys.newline],
  ]
  return (
    <Dialog title={keys.title} onClose={onClose}>
      <p className="faint">{keys.note}</p>
      <dl className="keys">
        {rows.map(([names, meaning]) => (
          <div key={meaning}>
            <dt>
              {names.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
