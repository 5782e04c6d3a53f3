/** A quoted text without the marks of Markdown, for one-line places; the text itself stays as it is. */
export function plainExcerpt(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s{0,3}(#{1,6}|>|[-*+])\s+/gm, '')
    .replace(/\*+|`+|~~/g, '')
    .trim()
}
