import { memo } from 'react'
import { languageOfText } from '../../words/text-language.ts'
import { MarkdownText } from './markdown.tsx'
import { splitBlocks } from './split-blocks.ts'

/** A sealed text; `base` = where it begins in the whole message, so that a selection can be cited. */
export const MessageMarkdown = memo(function MessageMarkdown({ text, base }: { text: string; base: number }) {
  return (
    <div className="prose" lang={languageOfText(text)}>
      <MarkdownText text={text} base={base} />
    </div>
  )
})

/** A text that is being written: only its last block is read anew with each piece. */
export function GrowingMarkdown({ text, growing }: { text: string; growing: boolean }) {
  return (
    <div className={growing ? 'prose prose-growing' : 'prose'} lang={languageOfText(text)}>
      {splitBlocks(text).map((block, index) => (
        // A block's place is its identity: blocks are only ever added at the end.
        <MarkdownText key={index} text={block} base={null} />
      ))}
    </div>
  )
}
