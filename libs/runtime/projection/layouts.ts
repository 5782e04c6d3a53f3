import * as layout1 from './layout-1.ts'
import type { ProjectableNode, RequestMessage } from './layout-1.ts'

/** How references become bytes. Old layouts stay for ever (decision 14). */
export type Layout = {
  nodeMessages(node: ProjectableNode): RequestMessage[]
  renderBody(frame: string, messages: readonly RequestMessage[]): string
}

/** The layout of requests made from now on. */
export const CURRENT_LAYOUT = 1

const layouts: ReadonlyMap<number, Layout> = new Map([[1, layout1]])

/** A recorded request names a layout that this release does not have. */
export class UnknownLayoutError extends Error {
  readonly version: number

  constructor(version: number) {
    super(`layout ${version} is not known here`)
    this.name = 'UnknownLayoutError'
    this.version = version
  }
}

/** The layout of a version; throws UnknownLayoutError. */
export function layoutOf(version: number): Layout {
  const layout = layouts.get(version)
  if (!layout) throw new UnknownLayoutError(version)
  return layout
}
