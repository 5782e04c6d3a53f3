import type { JsonValue } from '#kernel/ports/model-gateway'

/** An address with `{name}` where arguments stand. `chooses`: arguments choose the host, so that data can go anywhere. */
export type UrlTemplate = { text: string; names: string[]; chooses: boolean; origin: string | null }

const PLACE = /\{([A-Za-z0-9_.-]{1,64})\}/g

/** Reads a template; null for what can become no http(s) address, or holds a password. */
export function readTemplate(text: string): UrlTemplate | null {
  const names = [...text.matchAll(PLACE)].map((match) => match[1] ?? '')
  if (/^\{[A-Za-z0-9_.-]{1,64}\}$/.test(text)) return { text, names, chooses: true, origin: null }
  const probe = text.replaceAll(PLACE, 'x')
  if (/[{}\s\\]/.test(probe) || !URL.canParse(probe)) return null
  const url = new URL(probe)
  const parts = /^(https?):\/\/([^/?#]*)([^#]*)$/.exec(text)
  const authority = parts?.[2]
  if (!parts || authority === undefined || authority === '' || authority.includes('@') || url.username !== '') return null
  // A path that a parser would write otherwise could never be filled: it must be given as it goes out.
  if (url.pathname !== (pathOf(probe) || '/')) return null
  const chooses = authority.includes('{')
  return { text, names, chooses, origin: chooses ? null : url.origin }
}

/** The address with its arguments in; null where they would make it another place than the template says. */
export function fillTemplate(template: UrlTemplate, values: Readonly<Record<string, JsonValue>>): URL | null {
  if (template.text === `{${template.names[0]}}`) {
    const given = values[template.names[0] ?? '']
    return typeof given === 'string' && URL.canParse(given) ? new URL(given) : null
  }
  let fits = true
  const text = template.text.replaceAll(PLACE, (_, name: string) => {
    const value = values[name]
    const plain = value === undefined || value === null || typeof value === 'object' ? '' : String(value)
    if (plain === '') fits = false
    return encodeURIComponent(plain.toWellFormed())
  })
  if (!fits || !URL.canParse(text)) return null
  const url = new URL(text)
  // Dots that climb, or anything else that a parser would read as another path or host, change the address on the way.
  if (url.pathname !== (pathOf(text) || '/')) return null
  return template.origin === null || url.origin === template.origin ? url : null
}

function pathOf(address: string): string {
  return /^https?:\/\/[^/?#]*([^?#]*)/.exec(address)?.[1] ?? ''
}
