import { TokenScope } from '#contracts'
import type { OwnerView } from '#contracts'
import { sessionScopes } from '#domains/identity/principal'
import type { System } from '../composition/compose-system.ts'
import { signinLink } from '../session/signin-link.ts'
import { archive } from './archive-verb.ts'
import { replay, verify } from './record-verbs.ts'
import { UsageError } from './usage-error.ts'

/** What a verb works on: a system, and the address at which people reach it. */
export type AdminContext = { system: System; baseUrl: string; note: (text: string) => void }

/** `value` is all that goes to standard output; `ok` false ends the command with a code that is not zero. */
export type VerbAnswer = { value: string; ok: boolean }

export type AdminVerb = {
  /** The command line's help. */
  usage: string
  /** Names under which what follows the verb without a name of its own is given to it. */
  operands?: readonly string[]
  run: (context: AdminContext, options: Readonly<Record<string, string>>) => Promise<VerbAnswer>
}

export { UsageError }

const token: AdminVerb = {
  usage: 'token --name NAME [--owner NAME] [--scopes read,write,approve,admin]   prints a fresh API token',
  run: async ({ system }, { name, owner: ownerName, scopes: scopeList }) => {
    if (name === undefined || name === '' || name.length > 120)
      throw new UsageError('--name is needed: up to 120 characters by which you know the token again')
    const owner = await ownerOf(system, ownerName)
    // A token at the operator's hand can do what its owner can, but approving is asked for by name (decision 35).
    const scopes =
      scopeList === undefined ? [...sessionScopes(owner.role)].filter((scope) => scope !== 'approve') : scopeList.split(',').map(scopeOf)
    const created = await system.identity.tokens.create({
      ownerId: owner.id,
      name,
      scopes,
      grantable: sessionScopes(owner.role),
      actor: 'operator',
    })
    return { value: created.token ?? '', ok: true }
  },
}

const signin: AdminVerb = {
  usage: 'signin [--owner NAME]   prints a fresh sign-in link, good once within 15 minutes',
  run: async ({ system, baseUrl }, { owner: ownerName }) => {
    const owner = await ownerOf(system, ownerName)
    return { value: signinLink(baseUrl, await system.identity.signin.mintLink(owner.id)), ok: true }
  },
}

const migrate: AdminVerb = {
  usage: 'migrate   brings the database’s schema up to date',
  run: async ({ system, note }) => {
    for (const migration of system.appliedMigrations) note(`applied ${migration}`)
    return { value: `${system.appliedMigrations.length} applied; the schema is up to date`, ok: true }
  },
}

/** Everything that can be asked of Lingtai from a shell, by name. */
export const adminVerbs: Readonly<Record<string, AdminVerb>> = { token, signin, verify, replay, archive, migrate }

/** Runs a verb. Throws UsageError for one that is unknown or lacks an option. */
export async function runVerb(
  context: AdminContext,
  { verb, options }: { verb: string; options: Readonly<Record<string, string>> },
): Promise<VerbAnswer> {
  const found = Object.hasOwn(adminVerbs, verb) ? adminVerbs[verb] : undefined
  if (!found) throw new UsageError(`${verb} is no command; there are ${Object.keys(adminVerbs).join(', ')}`)
  return found.run(context, options)
}

async function ownerOf(system: System, name: string | undefined): Promise<OwnerView> {
  if (name === undefined) return system.firstOwner
  const owner = await system.identity.owners.byName(name)
  if (!owner) throw new UsageError(`there is no owner named ${name}`)
  return owner
}

function scopeOf(text: string): TokenScope {
  const scope = TokenScope.safeParse(text.trim())
  if (!scope.success) throw new UsageError(`${text} is no scope; there are ${TokenScope.options.join(', ')}`)
  return scope.data
}
