import { Component } from 'react'
import type { ReactNode } from 'react'
import { ProblemNote } from './problem-note.tsx'

/** A fault of the page itself: says so instead of leaving it white. Drafts are in the tab's storage and survive the reload. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { fault: unknown }> {
  override state: { fault: unknown } = { fault: null }

  static getDerivedStateFromError(fault: unknown): { fault: unknown } {
    return { fault }
  }

  override render(): ReactNode {
    if (this.state.fault === null) return this.props.children
    return (
      <main className="threshold">
        <ProblemNote problem={this.state.fault} onRetry={() => window.location.reload()} />
      </main>
    )
  }
}
