/** One message of an event stream. A comment (the server's heartbeat) is no message. */
export type SseMessage = { id: string | null; event: string; data: string }

/** Reads an event stream piece by piece: `push` takes decoded text cut anywhere and answers the messages it completed. */
export function createSseParser(): { push: (text: string) => SseMessage[] } {
  let rest = ''
  let id: string | null = null
  let event = ''
  let data: string[] = []

  function takeLine(line: string, messages: SseMessage[]): void {
    if (line === '') {
      if (data.length > 0) messages.push({ id, event: event === '' ? 'message' : event, data: data.join('\n') })
      event = ''
      data = []
      return
    }
    if (line.startsWith(':')) return
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
    else if (field === 'id') id = value
  }

  return {
    push(text) {
      const messages: SseMessage[] = []
      rest += text
      for (;;) {
        const end = /\r\n|\n|\r/.exec(rest)
        // A carriage return at the very end may be half of a pair: wait for the next piece.
        if (end === null || (end[0] === '\r' && end.index === rest.length - 1)) return messages
        const line = rest.slice(0, end.index)
        rest = rest.slice(end.index + end[0].length)
        takeLine(line, messages)
      }
    },
  }
}
