import type { ErrorCode } from '#contracts'

/** What happened and what to do, for each stable code of the API. */
export type ErrorWords = Record<ErrorCode, { title: string; action: string }>

export const errorsEn: ErrorWords = {
  validation_failed: { title: 'That is not valid', action: 'Nothing was changed. Correct what is named below and send it again.' },
  malformed_body: { title: 'That could not be read', action: 'Nothing was changed. Reload the page and try again.' },
  invalid_file: { title: 'The file could not be imported', action: 'Nothing was added. The place in the file is named below.' },
  payload_too_large: { title: 'That is too large', action: 'Nothing was changed. Send less; your text is kept here.' },
  unsupported_media_type: { title: 'This kind of file is not known here', action: 'Bring a card as JSON or PNG.' },
  not_signed_in: { title: 'You are signed out', action: 'Open a fresh sign-in link; your draft is kept in this tab.' },
  signin_link_invalid: {
    title: 'The link is used up, expired or unknown',
    action: 'Run npm run -s signin beside the server for a fresh one.',
  },
  forbidden_scope: { title: 'You may not do this', action: 'It needs other rights than you have.' },
  origin_refused: { title: 'The request came from another site', action: 'Use the page at the address that the server printed.' },
  host_refused: {
    title: 'The server does not know this host name',
    action: 'Use the printed address, or have the operator list the host.',
  },
  not_found: { title: 'It is not there', action: 'It may have been deleted. Go back and look again.' },
  method_not_allowed: { title: 'That is not possible here', action: 'Reload the page: it may be older than the server.' },
  candidate_open: { title: 'The answer is still being written', action: 'Wait for it, stop it, or go on from another message.' },
  partial_not_canonizable: { title: 'A partial answer cannot be canonized', action: 'Answer again, then canonize the whole one.' },
  already_canonical: { title: 'This is canonical already', action: 'Nothing to do.' },
  edit_forks: { title: 'What was sent is never changed', action: 'Use edit: it forks.' },
  node_deleted: { title: 'That message is deleted', action: 'Go on from another one.' },
  canonical_node: { title: 'That message is canonical', action: 'Confirm that its seal is withdrawn to delete it.' },
  other_version: { title: 'This belongs to another version of Lingtai', action: 'Try again once all of it runs the same version.' },
  run_ended: { title: 'The answer had ended already', action: 'Your words are kept; send them as a message.' },
  wrong_state: { title: 'That is not possible any more', action: 'It changed meanwhile; what you see is being read again.' },
  chain_broken: {
    title: 'The record of this is broken',
    action: 'Nothing goes on from here until an admin has looked at it. Go on from another place.',
  },
  revision_conflict: { title: 'Somebody changed it meanwhile', action: 'Nothing was overwritten. Look at the present state and decide.' },
  conflict: { title: 'This exists already', action: 'Nothing was changed. Choose another value for what is named below.' },
  rate_limited: { title: 'Too many requests', action: 'Nothing was changed; your text is kept. Wait a moment, then try again.' },
  idempotency_mismatch: { title: 'The same request was sent with other words', action: 'Try again.' },
  cursor_expired: { title: 'The list has moved on', action: 'Start from its beginning.' },
  queue_full: { title: 'Too many answers are waiting', action: 'Wait for one to end, or leave a line. Your text is kept.' },
  steers_full: { title: 'Too many interjections are waiting', action: 'Wait for the next turn. Your text is kept.' },
  killed: { title: 'The kill switch is set', action: 'An admin has to lift it. Your text is kept.' },
  invariant_refused: { title: 'The mirror tree refuses this', action: 'Nothing was changed.' },
  remote_failed: {
    title: 'A server elsewhere did not answer as it should',
    action: 'Nothing was changed. Look at that server and its address; then try again.',
  },
  unavailable: { title: 'The server is not ready', action: 'Your text is kept. Try again shortly.' },
  internal_error: {
    title: 'Something went wrong on the server',
    action: 'Nothing was written. Try again, and report the trace if it stays.',
  },
}
