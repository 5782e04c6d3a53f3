/**
 * One thing read from an SSE body: a JSON value, the [DONE] mark, a sign of life that carries nothing, or the fault that ends the reading.
 * A fault's `sample` is the beginning of what could not be read, for a person: content, never an event payload.
 */
export type SseItem =
  | { kind: 'json'; value: unknown; event: string }
  | { kind: 'done' }
  | { kind: 'comment' }
  | { kind: 'fault'; code: 'garbage' | 'oversize'; sample: string }

/** Limits in UTF-16 units: one event, and the whole body. */
export type SseLimits = { maxEventChars: number; maxTotalChars: number }

export type SseParser = {
  /** Feed bytes as they come; cuts may fall anywhere, also inside a character. After a fault nothing more is read. */
  push(bytes: Uint8Array): SseItem[]
  /** The body ended. A last unterminated line counts when it is whole; a cut one is left out, since nothing vouches for it. */
  end(): SseItem[]
}

/** A field of the SSE grammar; unknown ones are ignored, as the standard says. */
const FIELD = /^([a-z][a-z0-9-]*)(?::|$)/i
/** An event is tried for completeness at this many data lines; later only at its end, so that a hostile one costs linear time. */
const EAGER_LINES = 8

/**
 * A reader for model streams. Tolerant where providers differ and nothing is lost by it: CRLF, LF or CR, comments, unknown fields, one
 * newline between events, JSON split over several data lines, a bare JSON line. Whatever else is no SSE is a fault.
 */
export const createSseParser = (limits: SseLimits): SseParser => {
  const decoder = new TextDecoder('utf-8')
  let items: SseItem[] = []
  let line = ''
  let data = ''
  let dataLines = 0
  let event = ''
  let total = 0
  let endedWithCarriageReturn = false
  let dead = false

  const fault = (code: 'garbage' | 'oversize', sample: string): void => {
    dead = true
    items.push({ kind: 'fault', code, sample: sample.slice(0, 200) })
  }

  /** Publishes the gathered data when it is whole; `final` = nothing more can complete it. */
  const flush = (final: boolean): void => {
    const text = data.trim()
    const eager = dataLines <= EAGER_LINES && (text === '[DONE]' || (text[0] === '{' && text[text.length - 1] === '}'))
    if (text === '' || !(eager || final)) return
    if (text === '[DONE]') items.push({ kind: 'done' })
    else {
      try {
        items.push({ kind: 'json', value: JSON.parse(text), event })
      } catch {
        // More data lines may complete it; at the event's end nothing will.
        if (final) fault('garbage', text)
        return
      }
    }
    data = ''
    dataLines = 0
    event = ''
  }

  const readLine = (text: string): void => {
    if (text === '') {
      flush(true)
      event = ''
    } else if (text[0] === ':') items.push({ kind: 'comment' })
    else if (text[0] === '{') {
      data = text
      flush(true)
    } else {
      const field = FIELD.exec(text)?.[1]
      if (field === undefined) return fault('garbage', text)
      const value = text.slice(field.length + 1).replace(/^ /, '')
      if (field === 'event') event = value
      if (field !== 'data') return
      data = dataLines === 0 ? value : `${data}\n${value}`
      dataLines += 1
      if (data.length > limits.maxEventChars) fault('oversize', data)
      else flush(false)
    }
  }

  const pushText = (text: string): void => {
    if (text === '' || dead) return
    total += text.length
    let from = text.charCodeAt(0) === 10 && endedWithCarriageReturn ? 1 : 0
    for (let at = from; at < text.length && !dead; at++) {
      const code = text.charCodeAt(at)
      if (code !== 10 && code !== 13) continue
      readLine(line + text.slice(from, at))
      line = ''
      if (code === 13 && text.charCodeAt(at + 1) === 10) at++
      from = at + 1
    }
    endedWithCarriageReturn = text.charCodeAt(text.length - 1) === 13
    line += text.slice(from)
    if (!dead && (line.length > limits.maxEventChars || total > limits.maxTotalChars)) fault('oversize', line)
  }

  const take = (): SseItem[] => {
    const taken = items
    items = []
    return taken
  }

  return {
    push: (bytes) => {
      pushText(decoder.decode(bytes, { stream: true }))
      return take()
    },
    end: () => {
      pushText(decoder.decode())
      if (!dead && line !== '') readLine(line)
      if (!dead) flush(true)
      // What a cut leaves unreadable is no garbage: the missing finish_reason tells of it.
      return take().filter((item) => item.kind !== 'fault')
    },
  }
}
