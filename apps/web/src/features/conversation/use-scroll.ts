import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

const nearEnd = 90

/**
 * Keeps the reader's place: at the end it follows the words that come; anywhere else, the message in view stays where it is, whatever is
 * added above or changed below.
 */
export function useReadingPlace(version: unknown) {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const following = useRef(true)
  const anchor = useRef<{ id: string; top: number } | null>(null)
  const [away, setAway] = useState(false)

  const toEnd = useCallback(() => {
    following.current = true
    setAway(false)
    const element = scroller.current
    if (element !== null) element.scrollTop = element.scrollHeight
  }, [])

  /** Stops following, so that a change to come leaves the view in place. */
  const hold = useCallback(() => {
    following.current = false
  }, [])

  const showMessage = useCallback((nodeId: string) => {
    following.current = false
    const outer = scroller.current
    const element = content.current?.querySelector(`[data-node-id="${nodeId}"]`)
    if (outer === null || element == null) return
    const box = element.getBoundingClientRect()
    const view = outer.getBoundingClientRect()
    // A long message shows its beginning, a short one stands in the middle.
    outer.scrollTop += box.top - view.top - Math.max(24, (view.height - box.height) / 2)
  }, [])

  const remember = useCallback(() => {
    const element = scroller.current
    if (element === null) return
    following.current = element.scrollHeight - element.scrollTop - element.clientHeight < nearEnd
    setAway(!following.current)
    anchor.current = firstInView(element)
  }, [])

  // Words that arrive make the content grow without any change of the path.
  useEffect(() => {
    const inner = content.current
    const outer = scroller.current
    if (inner === null || outer === null) return
    const observer = new ResizeObserver(() => {
      if (following.current) outer.scrollTop = outer.scrollHeight
    })
    observer.observe(inner)
    observer.observe(outer)
    return () => observer.disconnect()
  }, [version])

  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null) return
    if (following.current) {
      element.scrollTop = element.scrollHeight
      return
    }
    const before = anchor.current
    if (before === null) return
    const now = content.current?.querySelector(`[data-node-id="${before.id}"]`)
    if (now != null) element.scrollTop += now.getBoundingClientRect().top - before.top
  }, [version])

  return { scroller, content, away, toEnd, hold, showMessage, remember }
}

function firstInView(scroller: HTMLElement): { id: string; top: number } | null {
  const edge = scroller.getBoundingClientRect().top
  for (const element of scroller.querySelectorAll<HTMLElement>('[data-node-id]')) {
    const box = element.getBoundingClientRect()
    if (box.bottom > edge && element.dataset.nodeId !== undefined) return { id: element.dataset.nodeId, top: box.top }
  }
  return null
}
