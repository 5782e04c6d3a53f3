import { memo, useMemo } from 'react'
import Markdown from 'react-markdown'
import type { Components } from 'react-markdown'
import { sourceSpans } from './source-spans.ts'
import { mayHaveTables, tables } from './tables.ts'

/** Only addresses that leave this page openly; a relative one would point into our own server. */
const allowedAddress = /^(https?:|mailto:)/i

const components: Components = {
  a: ({ href, children }) =>
    href !== undefined && allowedAddress.test(href) ? <OutLink href={href}>{children}</OutLink> : <>{children}</>,
  // Nothing is loaded from elsewhere: a picture is a link to it.
  img: ({ src, alt }) => {
    const label = alt === undefined || alt === '' ? (src ?? '') : alt
    return src !== undefined && allowedAddress.test(src) ? <OutLink href={src}>{label}</OutLink> : <>{label}</>
  },
  // The page has its own headings; a message's are text in weight alone.
  h1: ({ children }) => <p className="md-heading">{children}</p>,
  h2: ({ children }) => <p className="md-heading">{children}</p>,
  h3: ({ children }) => <p className="md-heading">{children}</p>,
  h4: ({ children }) => <p className="md-heading">{children}</p>,
  h5: ({ children }) => <p className="md-heading">{children}</p>,
  h6: ({ children }) => <p className="md-heading">{children}</p>,
  pre: ({ children }) => (
    <pre tabIndex={0} className="md-code">
      {children}
    </pre>
  ),
  // Scrolls where it is wide, so it must be reachable by keyboard.
  table: ({ children }) => (
    <div tabIndex={0} className="md-table">
      <table>{children}</table>
    </div>
  ),
}

function OutLink({ href, children }: { href: string; children: React.ReactNode }) {
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow external" title={href}>
      {children}
    </a>
  )
}

/** Untrusted text as Markdown: raw HTML is shown as the letters it is written in, never as markup. */
export const MarkdownText = memo(function MarkdownText({ text, base }: { text: string; base: number | null }) {
  const plugins = useMemo(() => [sourceSpans(base)], [base])
  const remark = useMemo(() => (mayHaveTables(text) ? tables : []), [text])
  return (
    <Markdown remarkPlugins={remark} rehypePlugins={plugins} components={components}>
      {text}
    </Markdown>
  )
})
