import type { ContinuationMessage } from './entity.ts'

type JsonFields = Record<string, unknown>

/**
 * A message of the run with each long text in it shown by its beginning and end: so many UTF-16 units of it, with how much is left out in
 * between. What is short stays, and so does every name and id; a message is still of its form. Pure: the same cut gives the same bytes.
 */
export function cutMessage({ kind, text }: Pick<ContinuationMessage, 'kind' | 'text'>, units: number): string {
  switch (kind) {
    case 'said':
      return cutText(text, units)
    case 'steer':
      return text
    case 'acted':
      return cutCalls(text, units)
    case 'observed':
      return cutResult(text, units)
  }
}

/** Units of the longest text in a message: what a cut leaves at most. */
export function longestText({ kind, text }: Pick<ContinuationMessage, 'kind' | 'text'>): number {
  return kind === 'steer' ? 0 : text.length
}

function cutResult(text: string, units: number): string {
  const message = fieldsOf(text)
  const content = message?.['content']
  if (!message || typeof content !== 'string') return text
  const told = fieldsOf(content)
  const observed = told?.['text']
  if (!told || typeof observed !== 'string') return JSON.stringify({ ...message, content: cutText(content, units) })
  const cut = cutText(observed, units)
  if (cut === observed) return text
  // Beside the text too: what is said in it could be anybody's word.
  const { text: _, ...rest } = told
  return JSON.stringify({ ...message, content: JSON.stringify({ ...rest, shown: 'in_part', text: cut }) })
}

function cutCalls(text: string, units: number): string {
  const message = fieldsOf(text)
  if (!message) return text
  const { content, tool_calls: calls } = message
  return JSON.stringify({
    ...message,
    content: typeof content === 'string' ? cutText(content, units) : content,
    ...(Array.isArray(calls) ? { tool_calls: calls.map((call: unknown) => cutCall(call, units)) } : {}),
  })
}

/** Arguments stay JSON, as providers ask of them. */
function cutCall(call: unknown, units: number): unknown {
  const called = isFields(call) ? call['function'] : undefined
  if (!isFields(call) || !isFields(called)) return call
  const given = called['arguments']
  if (typeof given !== 'string') return call
  const cut = cutText(given, units)
  return cut === given ? call : { ...call, function: { ...called, arguments: JSON.stringify({ shown_in_part: cut }) } }
}

/** A text's beginning and end, no sign halved, and a note of how much stands between them; as it is where the note would be no shorter. */
export function cutText(text: string, units: number): string {
  if (text.length <= units) return text
  const head = text.slice(0, wholeBefore(text, Math.ceil((units * 2) / 3)))
  const tail = text.slice(wholeAfter(text, text.length - Math.floor(units / 3)))
  const all = signs(text)
  const left = all - signs(head) - signs(tail)
  const cut = `${head}\n[… ${left} of ${all} characters are left out here to fit the window; the record has them all …]\n${tail}`
  return cut.length < text.length ? cut : text
}

function wholeBefore(text: string, at: number): number {
  return at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) ? at - 1 : at
}

function wholeAfter(text: string, at: number): number {
  return at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) ? at + 1 : at
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** Characters as people count them closest without tables: code points. */
function signs(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length; at++) if (isHigh(text.charCodeAt(at)) && at + 1 < text.length) count--
  return count
}

function isFields(value: unknown): value is JsonFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fieldsOf(text: string): JsonFields | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return isFields(parsed) ? parsed : null
  } catch {
    // No JSON has no fields, which is what is asked.
    return null
  }
}
