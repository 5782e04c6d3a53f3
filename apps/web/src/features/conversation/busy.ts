import { createContext, useContext } from 'react'

/** Whether the tree may not be changed just now. A context, so that a long list of messages needs no drawing when it changes. */
export const BusyContext = createContext(false)

export function useBusy(): boolean {
  return useContext(BusyContext)
}
