import type { CapabilityClass } from '#contracts'
import { useWords } from '../../words/words.ts'

/** Which tool, and what kind of action that is. */
export function ActionFacts({ tool, capability, reason }: { tool: string; capability: CapabilityClass; reason?: string }) {
  const words = useWords().actions
  return (
    <dl className="action-facts">
      <div>
        <dt>{words.tool}</dt>
        <dd>
          <code>{tool}</code>
        </dd>
      </div>
      <div>
        <dt>{words.capability}</dt>
        <dd>
          <strong>{words.classes[capability]}</strong> <span className="faint">{words.classTexts[capability]}</span>
        </dd>
      </div>
      {reason !== undefined && (
        <div>
          <dt>{words.why}</dt>
          <dd>{reason}</dd>
        </div>
      )}
    </dl>
  )
}
