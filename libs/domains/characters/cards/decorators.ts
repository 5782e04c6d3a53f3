import type { LoreDecorator } from './lore-types.ts'

const known = new Set(['activate', 'dont_activate', 'depth', 'role', 'scan_depth', 'position'])

/** Cuts the `@@name value` lines off the head of an entry's content, with the line breaks around them (card V3, decorators). */
export function splitDecorators(text: string): { decorators: LoreDecorator[]; content: string } {
  const lines = text.split('\n')
  const decorators: LoreDecorator[] = []
  let index = 0
  // blank lines may stand between decorators, but before the first one they belong to the content
  for (; index < lines.length; index += 1) {
    const line = lines[index] ?? ''
    if (line.trim() === '' && decorators.length > 0) continue
    const [head = '', marks, name = ''] = /^(@@@?)([A-Za-z_][A-Za-z0-9_]*)(?=\s|$)/.exec(line) ?? []
    const value = line.slice(head.length).trim()
    const last = decorators.at(-1)
    if (marks === '@@') decorators.push({ name, value, fallbacks: [] })
    else if (marks === '@@@' && last !== undefined) last.fallbacks.push({ name, value })
    else break
  }
  if (decorators.length === 0) return { decorators, content: text }
  return { decorators, content: lines.slice(index).join('\n') }
}

/** The inverse of `splitDecorators`. */
export function joinDecorators({ decorators, content }: { decorators: readonly LoreDecorator[]; content: string }): string {
  const line = (marks: string, { name, value }: { name: string; value: string }): string =>
    `${marks}${name}${value === '' ? '' : ` ${value}`}\n`
  const head = decorators.map((decorator) => line('@@', decorator) + decorator.fallbacks.map((fallback) => line('@@@', fallback)).join(''))
  return head.join('') + content
}

/** Name to value of the decorators we act on: of a chain the first known name, of a repeated name the first. */
export function knownDecorators(decorators: readonly LoreDecorator[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const decorator of decorators) {
    const chosen = [decorator, ...decorator.fallbacks].find(({ name }) => known.has(name))
    if (chosen !== undefined && !found.has(chosen.name)) found.set(chosen.name, chosen.value)
  }
  return found
}

/** Decorators of which neither the name nor a fallback means anything here. */
export const ignoredDecorators = (decorators: readonly LoreDecorator[]): LoreDecorator[] =>
  decorators.filter((decorator) => [decorator, ...decorator.fallbacks].every(({ name }) => !known.has(name)))
