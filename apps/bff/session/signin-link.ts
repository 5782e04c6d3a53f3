/** The secret stands in the fragment, which browsers send to nobody (decision 33). */
export function signinLink(base: string, secret: string): string {
  return `${base}/#signin=${secret}`
}
