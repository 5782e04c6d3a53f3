import { PROTOCOL_VERSION } from '#contracts'
import type { BundleContent } from '#contracts'
import { REDUCER_VERSION } from '#kernel/reducer/state'
import { CURRENT_LAYOUT } from '#runtime/projection/layouts'

/** Whether this release can run under a bundle: one protocol and no other; layouts and loops up to its own, since old ones stay (K7, decision 14). */
export function isKnownHere(content: Pick<BundleContent, 'protocol_version' | 'layout_version' | 'reducer_version'>): boolean {
  return (
    content.protocol_version === PROTOCOL_VERSION && content.layout_version <= CURRENT_LAYOUT && content.reducer_version <= REDUCER_VERSION
  )
}
