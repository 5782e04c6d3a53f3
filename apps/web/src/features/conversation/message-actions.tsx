import type { NodeView } from '#contracts'
import { testIds } from '../../test-ids.ts'
import { useWords } from '../../words/words.ts'
import { useBusy } from './busy.ts'
import type { MessageCommands } from './use-commands.ts'

/** What can be done with a message, in words. */
export function MessageActions({ node, commands, canRegenerate }: { node: NodeView; commands: MessageCommands; canRegenerate: boolean }) {
  const words = useWords().talk
  const busy = useBusy()
  const isAnswer = node.kind === 'candidate'
  return (
    <div className="message-actions">
      {canRegenerate && (
        <Action
          testId={testIds.regenerate}
          title={`${words.regenerateTitle} (R)`}
          disabled={busy}
          onClick={() => commands.regenerate(node)}
        >
          {isAnswer ? words.regenerate : words.askAgain}
        </Action>
      )}
      <Action
        testId={testIds.edit}
        title={`${isAnswer ? words.editAnswerTitle : words.editQuestionTitle} (E)`}
        disabled={busy}
        onClick={() => commands.edit(node)}
      >
        {words.edit}
      </Action>
      <Action testId={testIds.fork} title={`${words.forkTitle} (F)`} disabled={busy} onClick={() => commands.fork(node)}>
        {words.fork}
      </Action>
      <Action testId={testIds.cite} title={`${words.citeTitle} (Q)`} disabled={node.text === ''} onClick={() => commands.cite(node)}>
        {words.cite}
      </Action>
      {node.run_id !== null && isAnswer && (
        <Action testId={testIds.explain} title={`${words.explainTitle} (W)`} onClick={() => commands.explain(node)}>
          {words.explain}
        </Action>
      )}
      <Action testId={testIds.deleteMessage} title={words.deleteTitle} disabled={busy} onClick={() => commands.remove(node)}>
        {words.delete}
      </Action>
      {isAnswer && !node.canonical && (
        <Action
          testId={testIds.canonize}
          className="action-seal"
          title={node.partial ? words.canonizePartial : `${words.canonizeTitle} (C)`}
          disabled={node.partial || busy}
          onClick={() => commands.canonize(node)}
        >
          <span className="action-seal-mark" aria-hidden="true" />
          {words.canonize}
        </Action>
      )}
      {isAnswer && node.canonical && (
        <Action testId="withdraw" title={words.withdrawText} disabled={busy} onClick={() => commands.withdraw(node)}>
          {words.withdraw}
        </Action>
      )}
    </div>
  )
}

function Action({ testId, className, ...rest }: { testId: string } & React.ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button type="button" data-testid={testId} className={className === undefined ? 'action' : `action ${className}`} {...rest} />
}
