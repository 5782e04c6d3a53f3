import { useEffect, useEffectEvent } from 'react'

/** What a key does; answers false where it does nothing here, so that the next listener may take it. */
export type KeyActions = Record<string, (event: KeyboardEvent) => boolean>

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}

/** Single-key commands. They rest while somebody types and while a dialog is open; Escape alone works while typing too. */
export function useKeys(actions: KeyActions): void {
  const listen = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (document.querySelector('dialog[open]') !== null) return
    if (event.key !== 'Escape' && isTyping(event.target)) return
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key]
    if (action?.(event) === true) event.preventDefault()
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => listen(event)
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
}
