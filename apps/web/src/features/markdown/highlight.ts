export type Token = { kind: 'comment' | 'string' | 'number' | 'keyword' | null; text: string }

const keywords = new Set(
  `abstract and as async await boolean break case catch class const continue def default del delete do elif else enum except export extends
  false final finally fn for from func function if impl implements import in instanceof int interface is lambda let match mut new nil None not
  null of or package pass private protected pub public raise return select self static string struct super switch this throw true True try
  type typeof undefined use var void where while with yield False`.split(/\s+/),
)

const pattern =
  /(\/\*[\s\S]*?(?:\*\/|$)|\/\/[^\n]*|(?<=^|\s)#[^\n]*|<!--[\s\S]*?(?:-->|$)|--\s[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([\p{L}_$][\p{L}\p{N}_$]*)/gu

/** A rough cut of code into comments, strings, numbers and keywords: one rule for all languages, enough to read by. */
export function highlight(code: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  const plain = (text: string) => {
    if (text === '') return
    const last = tokens.at(-1)
    if (last !== undefined && last.kind === null) last.text += text
    else tokens.push({ kind: null, text })
  }
  for (const match of code.matchAll(pattern)) {
    plain(code.slice(at, match.index))
    const [text, comment, string, number, word] = match
    if (comment !== undefined) tokens.push({ kind: 'comment', text })
    else if (string !== undefined) tokens.push({ kind: 'string', text })
    else if (number !== undefined) tokens.push({ kind: 'number', text })
    else if (word !== undefined && keywords.has(word)) tokens.push({ kind: 'keyword', text })
    else plain(text)
    at = match.index + text.length
  }
  plain(code.slice(at))
  return tokens
}
