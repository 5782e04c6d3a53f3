import type { ContinuationMessage } from './entity.ts'

type JsonFields = Record<string, unknown>

/** What is shown of a text, or of a message, where so many UTF-16 units of each long text are. Read once, cut often. */
export type Cut = (units: number) => string

/**
 * A message of the run with each long text in it shown by its beginning and end, with how much is left out in between. What is short stays,
 * and so does every name and id; a message is still of its form. Pure: the same cut gives the same bytes.
 */
export function cutOf({ kind, text }: Pick<ContinuationMessage, 'kind' | 'text'>): Cut {
  switch (kind) {
    case 'said':
      return cutOfText(text)
    case 'steer':
      return () => text
    case 'acted':
      return cutOfCalls(text)
    case 'observed':
      return cutOfResult(text)
  }
}

function cutOfResult(text: string): Cut {
  const message = fieldsOf(text)
  const content = message?.['content']
  if (!message || typeof content !== 'string') return () => text
  const told = fieldsOf(content)
  const observed = told?.['text']
  if (!told || typeof observed !== 'string') {
    const whole = cutOfText(content)
    return (units) => JSON.stringify({ ...message, content: whole(units) })
  }
  const cutOfObserved = cutOfText(observed)
  const { text: _, ...rest } = told
  return (units) => {
    const cut = cutOfObserved(units)
    // Beside the text too: what is said in it could be anybody's word.
    return cut === observed ? text : JSON.stringify({ ...message, content: JSON.stringify({ ...rest, shown: 'in_part', text: cut }) })
  }
}

function cutOfCalls(text: string): Cut {
  const message = fieldsOf(text)
  if (!message) return () => text
  const { content, tool_calls: calls } = message
  const said = typeof content === 'string' ? cutOfText(content) : () => content
  const made = Array.isArray(calls) ? calls.map(cutOfCall) : null
  return (units) => JSON.stringify({ ...message, content: said(units), ...(made ? { tool_calls: made.map((call) => call(units)) } : {}) })
}

/** Arguments stay JSON, as providers ask of them. */
function cutOfCall(call: unknown): (units: number) => unknown {
  const called = isFields(call) ? call['function'] : undefined
  const given = isFields(called) ? called['arguments'] : undefined
  if (!isFields(call) || !isFields(called) || typeof given !== 'string') return () => call
  const cutOfGiven = cutOfText(given)
  return (units) => {
    const cut = cutOfGiven(units)
    return cut === given ? call : { ...call, function: { ...called, arguments: JSON.stringify({ shown_in_part: cut }) } }
  }
}

/** A text's beginning and end, no sign halved, and a note of how much stands between them; as it is where the note would be no shorter. */
export function cutOfText(text: string): Cut {
  let all: number | null = null
  return (units) => {
    if (text.length <= units) return text
    const head = text.slice(0, wholeBefore(text, Math.ceil((units * 2) / 3)))
    const tail = text.slice(wholeAfter(text, text.length - Math.floor(units / 3)))
    all ??= signs(text)
    const left = all - signs(head) - signs(tail)
    const cut = `${head}\n[… ${left} of ${all} characters are left out here to fit the window; the record has them all …]\n${tail}`
    return cut.length < text.length ? cut : text
  }
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
