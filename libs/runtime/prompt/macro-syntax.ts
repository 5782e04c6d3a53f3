/** A stretch of a text: from the first UTF-16 unit to one past the last. */
export type Span = { from: number; to: number }

/** How a macro's arguments are introduced: `{{name::…}}`, `{{name:…}}`, `{{name …}}`. */
export type Separator = '::' | ':' | ' '

/** A macro's head: its name in lower case and, where it has any, the span of what follows its separator. */
export type MacroHead = { name: string; separator: Separator | null; rest: Span }

/** Opening brace pair → its closing pair, for every pair that closes. Nested pairs are matched inside out, in one pass. */
export function matchBraces(text: string): ReadonlyMap<number, number> {
  const pairs = new Map<number, number>()
  const open: number[] = []
  for (let at = 0; at < text.length - 1;) {
    if (text.startsWith('{{', at)) {
      // Of three and more braces in a row the last two open the macro: `{{{char}}}` is a name in braces.
      if (text[at + 2] === '{') {
        at += 1
        continue
      }
      open.push(at)
      at += 2
    } else if (text.startsWith('}}', at)) {
      const opening = open.pop()
      if (opening !== undefined) pairs.set(opening, at)
      at += 2
    } else {
      at += 1
    }
  }
  return pairs
}

const NAME = /\s*([A-Za-z_][A-Za-z0-9_]*)/y
const SEPARATOR = /\s*(::|:)|(\s+)/y

/** Reads the head of a macro's body; null where it has no name or goes on in a way that no macro does. */
export function readHead(text: string, body: Span): MacroHead | null {
  NAME.lastIndex = body.from
  const named = NAME.exec(text)
  const afterName = NAME.lastIndex
  if (!named || afterName > body.to) return null
  const name = (named[1] ?? '').toLowerCase()
  if (text.slice(afterName, body.to).trim() === '') return { name, separator: null, rest: { from: body.to, to: body.to } }
  SEPARATOR.lastIndex = afterName
  const separated = SEPARATOR.exec(text)
  if (!separated) return null
  const separator: Separator = separated[1] === '::' ? '::' : separated[1] === ':' ? ':' : ' '
  return { name, separator, rest: { from: SEPARATOR.lastIndex, to: body.to } }
}

/** Cuts a span at a delimiter, outside nested macros and not after a backslash. */
export function splitSpan(input: { text: string; span: Span; delimiter: string; pairs: ReadonlyMap<number, number> }): Span[] {
  const { text, span, delimiter, pairs } = input
  const parts: Span[] = []
  let from = span.from
  for (let at = span.from; at < span.to;) {
    const close = pairs.get(at)
    if (close !== undefined && close < span.to) {
      at = close + 2
    } else if (text[at] === '\\') {
      at += 2
    } else if (text.startsWith(delimiter, at)) {
      parts.push({ from, to: at })
      at += delimiter.length
      from = at
    } else {
      at += 1
    }
  }
  parts.push({ from, to: span.to })
  return parts
}
