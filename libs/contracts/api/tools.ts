import { z } from 'zod'
import { Trust } from '../enums.ts'
import { Digest, Id, Slug } from '../ids.ts'
import { CapabilityClass, Consequence, Egress } from '../tools.ts'

/** Where a tool comes from. */
export const ToolKind = z.enum(['builtin', 'http', 'openapi', 'mcp'])
export type ToolKind = z.infer<typeof ToolKind>

/** Tools of one source, and sources of one owner, at most. */
export const TOOLS_PER_SOURCE = 64
export const SOURCES_PER_OWNER = 32

const jsonObject = z.record(z.string().max(200), z.json())

export const ToolView = z
  .object({
    name: Slug,
    description: z.string(),
    /** JSON schema of the arguments. */
    parameters: z.record(z.string(), z.unknown()),
    capability: CapabilityClass,
    consequence: Consequence,
    egress: Egress,
    undoable: z.boolean(),
    price_micros: z.int().nullable(),
    /** What is accepted is this version and no other. */
    version: Digest,
    source: z.object({ kind: ToolKind, id: Id.nullable(), name: z.string().nullable() }),
    /** Only an accepted tool is ever offered to a character. */
    accepted: z.boolean(),
    /** The far side offers it no longer. */
    missing: z.boolean(),
    /** How far the description is trusted: a stranger's words stay untrusted until they are accepted (K1). */
    trust: Trust,
  })
  .meta({ id: 'Tool' })
export type ToolView = z.infer<typeof ToolView>

/** Headers that the connection itself sets. */
const managedHeaders =
  /^(host|content-length|content-type|transfer-encoding|connection|upgrade|te|trailer|keep-alive|expect|accept-encoding|idempotency-key|proxy-.*|mcp-.*|last-event-id)$/

/** A header that goes with every request; its value is kept encrypted and never shown again. */
const headers = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, 'must be the name of a header')
      .transform((name) => name.toLowerCase()),
    z.string().regex(/^[\x20-\x7e]{1,4000}$/, 'must be 1 to 4000 plain characters'),
  )
  .refine((given) => Object.keys(given).length <= 16, 'must be at most 16 headers')
  .refine(
    (given) => Object.keys(given).every((name) => !managedHeaders.test(name)),
    'must not name headers that the connection itself sets',
  )

const address = z.string().min(1).max(2000)

export const HttpToolInput = z.object({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,34}$/, 'must be 1 to 34 letters, digits, - and _'),
  description: z.string().trim().min(1).max(2000),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
  /** With `{name}` where an argument stands; one in the host, or a whole address, makes the egress free. */
  url: address,
  /** JSON schema of an object. */
  parameters: jsonObject,
  /** Where arguments go that do not stand in the address: the query of GET, HEAD and DELETE, else a JSON body. */
  places: z.record(z.string().max(200), z.enum(['query', 'body'])).optional(),
  /** Never lower than the method has it: read_only for GET and HEAD, irreversible_external for the rest. */
  capability: CapabilityClass.optional(),
  /** What one call costs at most, in micro-units. */
  price_micros: z.int().min(0).optional(),
  /** Asked with GET what became of an Idempotency-Key, which stands for `{key}`: 200 = it happened, 404 = not known. */
  look_up_url: address.optional(),
})
export type HttpToolInput = z.infer<typeof HttpToolInput>

export const HttpSourceInput = z.object({ tools: z.array(HttpToolInput).min(1).max(TOOLS_PER_SOURCE), headers: headers.optional() })
export type HttpSourceInput = z.infer<typeof HttpSourceInput>

export const OpenApiSourceInput = z.object({
  /** An OpenAPI 3 document, as JSON. */
  document: jsonObject,
  /** Where the API is; the document's first server where left out. */
  base_url: address.optional(),
  /** The operations to take, by operationId. */
  operations: z.array(z.string().min(1).max(200)).min(1).max(TOOLS_PER_SOURCE),
  headers: headers.optional(),
})
export type OpenApiSourceInput = z.infer<typeof OpenApiSourceInput>

export const McpSourceInput = z.object({
  /** A server that speaks streamable HTTP; one place, so nothing stands for anything in it. */
  url: address
    .refine((text) => /^https?:\/\/[^{}]+$/i.test(text) && URL.canParse(text), { message: 'must be an http or https address' })
    .optional(),
  /** A server that the operator listed to be started here; for admins. */
  server: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,39}$/)
    .optional(),
  headers: headers.optional(),
})
export type McpSourceInput = z.infer<typeof McpSourceInput>

export const CreateToolSource = z
  .object({
    /** The first part of its tools' names. */
    name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,23}$/, 'must be 1 to 24 small letters, digits, - and _'),
    http: HttpSourceInput.optional(),
    openapi: OpenApiSourceInput.optional(),
    mcp: McpSourceInput.optional(),
  })
  .refine(({ http, openapi, mcp }) => [http, openapi, mcp].filter((part) => part !== undefined).length === 1, {
    message: 'exactly one of http, openapi and mcp must be given',
    path: ['http'],
  })
  .refine(({ mcp }) => mcp === undefined || (mcp.url === undefined) !== (mcp.server === undefined), {
    message: 'exactly one of url and server must be given',
    path: ['mcp', 'url'],
  })
  .meta({ id: 'CreateToolSource' })
export type CreateToolSource = z.infer<typeof CreateToolSource>

/** What the far side offers and cannot be used, with a slug that says why; `parameter`: that alone, and the tool is offered without it. */
export const RefusedTool = z.object({ name: z.string(), code: Slug, parameter: z.string().optional() })
export type RefusedTool = z.infer<typeof RefusedTool>

export const ToolSourceView = z
  .object({
    id: Id,
    name: z.string(),
    kind: ToolKind.exclude(['builtin']),
    /** Where it is: an origin, or the name of a server that is started here. */
    place: z.string(),
    header_names: z.array(z.string()),
    /** False where the key is lost that its headers were encrypted with: make the source anew. */
    headers_readable: z.boolean(),
    tools: z.array(ToolView),
    /** What was left out when the source was made, or looked at just now. */
    refused: z.array(RefusedTool),
    created_at: z.string(),
  })
  .meta({ id: 'ToolSource' })
export type ToolSourceView = z.infer<typeof ToolSourceView>

/**
 * The owner's yes to exactly these versions; what is not named is not accepted, nor any longer. `capability` sets the class of a tool,
 * never lower than its declaration allows; a tool of an MCP server that is not named read_only counts as irreversible_external.
 */
export const AcceptToolSource = z
  .strictObject({
    tools: z.array(z.strictObject({ name: Slug, version: Digest, capability: CapabilityClass.optional() })).max(TOOLS_PER_SOURCE),
  })
  .meta({ id: 'AcceptToolSource' })
export type AcceptToolSource = z.infer<typeof AcceptToolSource>
