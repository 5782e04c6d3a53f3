import { UsageError } from '../admin/admin-verbs.ts'

/** `verb --name value --flag=value` as a verb and its options. Throws UsageError. */
export function parseArguments(argv: readonly string[]): { verb: string; options: Record<string, string> } {
  const [verb, ...rest] = argv
  if (verb === undefined || verb.startsWith('-')) throw new UsageError('name a command')
  const options: Record<string, string> = {}
  for (let at = 0; at < rest.length; at++) {
    const match = /^--([a-z][a-z-]*)(?:=(.*))?$/s.exec(rest[at] ?? '')
    const name = match?.[1]
    if (name === undefined) throw new UsageError(`${rest[at]} is no option; options are written --name value`)
    const value = match?.[2] ?? rest[++at]
    if (value === undefined) throw new UsageError(`--${name} wants a value`)
    options[name] = value
  }
  return { verb, options }
}
