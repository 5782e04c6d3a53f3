import { z } from 'zod'
import { OwnerRole, TokenScope } from '../enums.ts'
import { Id } from '../ids.ts'

export const RedeemSigninLink = z.object({ secret: z.string().min(20).max(200) }).meta({ id: 'RedeemSigninLink' })
export type RedeemSigninLink = z.infer<typeof RedeemSigninLink>

export const OwnerView = z.object({ id: Id, name: z.string(), role: OwnerRole }).meta({ id: 'Owner' })
export type OwnerView = z.infer<typeof OwnerView>

/** Who is signed in, and what the instance runs on. */
export const SessionView = z
  .object({
    owner: OwnerView,
    instance: z.object({
      tier: z.enum(['light', 'full']),
      version: z.string(),
      model: z.object({ name: z.string(), demo: z.boolean(), window_tokens: z.int() }),
      embedder: z.object({ name: z.string(), lexical: z.boolean() }),
    }),
  })
  .meta({ id: 'Session' })
export type SessionView = z.infer<typeof SessionView>

export const CreateToken = z
  .object({ name: z.string().min(1).max(120), scopes: z.array(TokenScope).min(1).max(4).default(['read', 'write']) })
  .meta({ id: 'CreateToken' })
export type CreateToken = z.infer<typeof CreateToken>

/** `token` is shown once; a replayed creation answers null (decision 30). */
export const CreatedToken = z
  .object({ id: Id, name: z.string(), scopes: z.array(TokenScope), token: z.string().nullable() })
  .meta({ id: 'CreatedToken' })
export type CreatedToken = z.infer<typeof CreatedToken>

export const TokenView = z
  .object({
    id: Id,
    name: z.string(),
    scopes: z.array(TokenScope),
    created_at: z.string(),
    last_used_at: z.string().nullable(),
    revoked_at: z.string().nullable(),
  })
  .meta({ id: 'Token' })
export type TokenView = z.infer<typeof TokenView>

export const CreateOwner = z.object({ name: z.string().min(1).max(80), role: OwnerRole.default('user') }).meta({ id: 'CreateOwner' })
export type CreateOwner = z.infer<typeof CreateOwner>

/** The link is shown once. */
export const CreatedOwner = z.object({ owner: OwnerView, signin_link: z.string().nullable() }).meta({ id: 'CreatedOwner' })
export type CreatedOwner = z.infer<typeof CreatedOwner>
