import { Authenticator } from '#domains/identity/authenticator'
import { OwnersService } from '#domains/identity/owners.service'
import type { WelcomeOwner } from '#domains/identity/owners.service'
import { SigninService } from '#domains/identity/signin.service'
import { TokensService } from '#domains/identity/tokens.service'
import { IdentityRepository } from '#infra/prisma/identity.repository'
import type { Foundation } from './foundation.ts'

/** Owners and what they sign in with. */
export function composeIdentity({ database, log, clock, ids }: Foundation, welcome: WelcomeOwner) {
  const store = new IdentityRepository(database)
  const parts = { unit: database, store, log, clock, ids }
  return {
    authenticator: new Authenticator(parts),
    signin: new SigninService(parts),
    tokens: new TokensService(parts),
    owners: new OwnersService({ ...parts, welcome }),
  }
}
