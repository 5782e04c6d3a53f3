import { UsageError } from '../admin/admin-verbs.ts'

/**
 * `verb operand --name value --flag=value` as a verb and its options; operands get the names that `operandsOf` has for the verb, in order.
 * Throws UsageError.
 */
export function parseArguments(
  argv: readonly string[],
  operandsOf: (verb: string) => readonly string[] = () => [],
): { verb: string; options: Record<string, string> } {
  const [verb, ...rest] = argv
  if (verb === undefined || verb.startsWith('-')) throw new UsageError('name a command')
  const options: Record<string, string> = {}
  const operands = [...operandsOf(verb)]
  for (let at = 0; at < rest.length; at++) {
    const match = /^--([a-z][a-z-]*)(?:=(.*))?$/s.exec(rest[at] ?? '')
    const name = match?.[1]
    const operand = name === undefined && !(rest[at] ?? '').startsWith('-') ? operands.shift() : undefined
    if (operand !== undefined) {
      options[operand] = rest[at] ?? ''
      continue
    }
    if (name === undefined) throw new UsageError(`${rest[at]} is no option; options are written --name value`)
    const value = match?.[2] ?? rest[++at]
    if (value === undefined) throw new UsageError(`--${name} wants a value`)
    options[name] = value
  }
  return { verb, options }
}
