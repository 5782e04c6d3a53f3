/** Why a run whose model call broke off is interrupted, by the gateway's code. */
export function interruptReason(code: string): 'network' | 'timeout' | 'provider_error' | 'no_finish_reason' {
  switch (code) {
    case 'connection_lost':
      return 'network'
    case 'stalled':
    case 'response_timeout':
      return 'timeout'
    case 'ended_early':
      return 'no_finish_reason'
    default:
      return 'provider_error'
  }
}
