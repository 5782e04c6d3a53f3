import type { RequestMessage } from './layout-1.ts'
import { CURRENT_LAYOUT, layoutOf } from './layouts.ts'

/** The frame is not the JSON text of a non-empty object without messages. */
export class InvalidFrameError extends Error {
  constructor(reason: string) {
    super(`the request frame ${reason}`)
    this.name = 'InvalidFrameError'
  }
}

function checkFrame(frame: string): void {
  if (!frame.startsWith('{"') || !frame.endsWith('}'))
    throw new InvalidFrameError('is not the text of a non-empty JSON object, without space around it')
  let parsed: unknown
  try {
    parsed = JSON.parse(frame)
  } catch (cause) {
    throw new InvalidFrameError(`is not JSON: ${cause instanceof Error ? cause.message : 'unreadable'}`)
  }
  if (typeof parsed === 'object' && parsed !== null && Object.hasOwn(parsed, 'messages'))
    throw new InvalidFrameError('holds messages of its own')
}

/**
 * The body of a request: frame (model, sampling, tools, response format … as JSON text) and messages, put together by a layout.
 * The same input gives the same bytes. Throws InvalidFrameError, UnknownLayoutError.
 */
export function renderRequest(request: { frame: string; messages: readonly RequestMessage[]; layoutVersion?: number }): string {
  checkFrame(request.frame)
  return layoutOf(request.layoutVersion ?? CURRENT_LAYOUT).renderBody(request.frame, request.messages)
}
