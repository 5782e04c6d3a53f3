/** Stable error codes of the API with their HTTP status and what to do (spec/6, RFC 9457). */
export const errorCodes = {
  validation_failed: { status: 400, title: 'The request is not valid', action: 'Correct the named fields and send it again.' },
  malformed_body: { status: 400, title: 'The body could not be read', action: 'Send well-formed JSON of the stated type.' },
  invalid_file: { status: 422, title: 'The file could not be imported', action: 'See the named place in the file.' },
  payload_too_large: { status: 413, title: 'The body is too large', action: 'Send less; the limit is in the detail.' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported', action: 'See the API document for accepted types.' },
  not_signed_in: { status: 401, title: 'Not signed in', action: 'Open a sign-in link or send a bearer token.' },
  signin_link_invalid: {
    status: 401,
    title: 'The sign-in link is used up, expired or unknown',
    action: 'Run `npm run -s signin` for a fresh one.',
  },
  forbidden_scope: { status: 403, title: 'The token may not do this', action: 'Use a token with the named scope.' },
  origin_refused: { status: 403, title: 'The request comes from another site', action: 'Use the page of this server, or a bearer token.' },
  host_refused: {
    status: 421,
    title: 'The host name is not known here',
    action: 'Use the printed address, or list the host in LINGTAI_HOST.',
  },
  not_found: { status: 404, title: 'Not found', action: 'Check the id.' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here', action: 'See the API document.' },
  candidate_open: { status: 409, title: 'The answer is still being written', action: 'Wait for it, stop it, or go on from a sealed node.' },
  partial_not_canonizable: { status: 409, title: 'A partial answer cannot be canonized', action: 'Regenerate it first.' },
  already_canonical: { status: 409, title: 'This is canonical already', action: 'Nothing to do.' },
  edit_forks: { status: 409, title: 'What was sent is never changed', action: 'Use the edit call: it forks.' },
  node_deleted: { status: 409, title: 'The node is deleted', action: 'Go on from another node.' },
  canonical_node: { status: 409, title: 'The node is canonical', action: 'Confirm the withdrawal to delete it.' },
  run_ended: { status: 409, title: 'The run has ended', action: 'Ask again.' },
  other_version: {
    status: 409,
    title: 'This is of another version of Lingtai',
    action: 'Leave it to a process of that version, or bring all processes to one version.',
  },
  wrong_state: { status: 409, title: 'This is not possible in the present state', action: 'Read it again.' },
  chain_broken: {
    status: 409,
    title: 'The record of this is broken',
    action: 'Nothing goes on from here until an admin has looked at it; go on from another place.',
  },
  revision_conflict: { status: 412, title: 'Somebody changed it meanwhile', action: 'Read it again and decide.' },
  idempotency_mismatch: { status: 422, title: 'The idempotency key was used with another body', action: 'Use a fresh key.' },
  cursor_expired: { status: 410, title: 'The cursor is no longer known', action: 'Start from the beginning.' },
  conflict: { status: 409, title: 'This exists already', action: 'Choose another value for the named field.' },
  rate_limited: { status: 429, title: 'Too many requests', action: 'Wait as long as the Retry-After header says, then try again.' },
  queue_full: { status: 429, title: 'Too many runs are waiting', action: 'Wait for one to end, or cancel one.' },
  steers_full: { status: 429, title: 'Too many interjections are waiting', action: 'Wait for the next turn.' },
  killed: { status: 423, title: 'The kill switch is set', action: 'An admin has to lift it.' },
  invariant_refused: { status: 409, title: 'The mirror tree refuses this', action: 'See the named invariant.' },
  remote_failed: {
    status: 424,
    title: 'A server elsewhere did not answer as it should',
    action: 'Look at that server and its address; then try again.',
  },
  unavailable: { status: 503, title: 'The service is not ready', action: 'Try again shortly.' },
  internal_error: { status: 500, title: 'Something went wrong here', action: 'Nothing was written; try again, and report the trace id.' },
} as const satisfies Record<string, { status: number; title: string; action: string }>

export type ErrorCode = keyof typeof errorCodes

/** A refusal with a stable code, where it lies and what it concerns. Thrown by domain services, mapped to problem+json at the edge. */
export class LingtaiError extends Error {
  readonly code: ErrorCode
  readonly errors: readonly FieldError[]
  readonly data: Readonly<Record<string, unknown>>

  constructor(
    code: ErrorCode,
    detail?: string,
    options: { errors?: readonly FieldError[]; data?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(detail ?? errorCodes[code].title, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'LingtaiError'
    this.code = code
    this.errors = options.errors ?? []
    this.data = options.data ?? {}
  }
}

/** One faulty field: a JSON path such as `citations[0].from`. */
export type FieldError = { path: string; message: string }
