/** Elements whose content nobody reads. */
const silent = 'script|style|template|noscript|svg|math|iframe|object|head'
const blocks: ReadonlySet<string> = new Set(
  'address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table td th tr ul title'.split(
    ' ',
  ),
)
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  hellip: '…',
  mdash: '—',
  ndash: '–',
}

/**
 * What a page says, without its markup, scripts, comments and what is marked as hidden by an attribute. A reduction for reading, no
 * sanitiser: the text stays untrusted. Linear in the length of the page.
 */
export function htmlToText(html: string): string {
  const title = /<title[^>]{0,200}>([^<]{0,500})<\/title/i.exec(html.slice(0, 65_536))?.[1] ?? ''
  const body = withoutSilent(html)
  let text = ''
  for (let at = 0; at < body.length;) {
    const open = body.indexOf('<', at)
    text += body.slice(at, open === -1 ? body.length : open)
    if (open === -1) break
    const name = /^<\/?([a-z][a-z0-9]*|[!?])/i.exec(body.slice(open, open + 24))?.[1]?.toLowerCase()
    if (name === undefined) {
      text += '<'
      at = open + 1
      continue
    }
    const close = body.indexOf('>', open)
    if (close === -1) break
    text += blocks.has(name) ? '\n' : ''
    at = close + 1
  }
  return tidy(decodeEntities(`${title}\n${text}`))
}

/** Cuts comments and silent elements, up to their end or the page's. */
function withoutSilent(html: string): string {
  const opening = new RegExp(`<!--|<(${silent})(?=[\\s/>])`, 'gi')
  let kept = ''
  let at = 0
  for (let found = opening.exec(html); found; found = opening.exec(html)) {
    kept += html.slice(at, found.index)
    at = found[1] === undefined ? endOfComment(html, opening.lastIndex) : endOfElement(html, found[1], opening.lastIndex)
    opening.lastIndex = at
  }
  return kept + html.slice(at)
}

function endOfComment(html: string, from: number): number {
  const end = html.indexOf('-->', from)
  return end === -1 ? html.length : end + 3
}

function endOfElement(html: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}`, 'gi')
  closing.lastIndex = from
  const end = closing.exec(html) ? html.indexOf('>', closing.lastIndex) : -1
  return end === -1 ? html.length : end + 1
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return entities[name.toLowerCase()] ?? whole
    const code = name[1]?.toLowerCase() === 'x' ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10_ffff ? String.fromCodePoint(code) : whole
  })
}

function tidy(text: string): string {
  const lines = text.split(/\r\n|[\r\n]/).map((line) => line.replaceAll(/[^\S\n]+/g, ' ').trim())
  return lines
    .filter((line, index) => line !== '' || (lines[index - 1] ?? '') !== '')
    .join('\n')
    .trim()
}
