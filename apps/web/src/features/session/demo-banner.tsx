import { useSession } from '../../store/session.tsx'
import { testIds } from '../../test-ids.ts'
import { useFormat, useWords } from '../../words/words.ts'

/** Names the built-in model as what it is, with the window that bounds what it sees. */
export function DemoBanner() {
  const words = useWords()
  const format = useFormat()
  const { model } = useSession().instance
  if (!model.demo) return null
  return (
    <header className="demo-banner" data-testid={testIds.demoBanner}>
      <strong>{words.banner.demo}</strong>
      <span className="demo-banner-text">{words.banner.demoText}</span>
      <span className="demo-banner-window">{words.banner.window(format.number(model.window_tokens))}</span>
    </header>
  )
}
