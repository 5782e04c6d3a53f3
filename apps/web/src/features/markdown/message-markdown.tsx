import { lazy, memo, Suspense } from 'react'
import { languageOfText } from '../../words/text-language.ts'
import { splitBlocks } from './split-blocks.ts'

const MarkdownText = lazy(() => import('./markdown.tsx').then((module) => ({ default: module.MarkdownText })))

/** A sealed text. Until the renderer is here the letters stand as they are. */
export const MessageMarkdown = memo(function MessageMarkdown({ text, base }: { text: string; base: number }) {
  return (
    <div className="prose" lang={languageOfText(text)}>
      <Suspense fallback={<PlainText text={text} base={base} />}>
        <MarkdownText text={text} base={base} />
      </Suspense>
    </div>
  )
})

/** A text that is being written: only its last block is read anew with each piece. */
export function GrowingMarkdown({ text, growing }: { text: string; growing: boolean }) {
  const blocks = splitBlocks(text)
  return (
    <div className={growing ? 'prose prose-growing' : 'prose'} lang={languageOfText(text)}>
      <Suspense fallback={<PlainText text={text} base={null} />}>
        {blocks.map((block, index) => (
          // A block's place is its identity: blocks are only ever added at the end.
          <MarkdownText key={index} text={block} base={null} />
        ))}
      </Suspense>
    </div>
  )
}

function PlainText({ text, base }: { text: string; base: number | null }) {
  return (
    <p>
      {base === null ? (
        text
      ) : (
        <span data-from={base} data-to={base + text.length}>
          {text}
        </span>
      )}
    </p>
  )
}
