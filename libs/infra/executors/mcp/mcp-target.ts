import { TOOLS_PER_SOURCE } from '#contracts'
import type { OfferedTool, ToolDeclaration } from '#domains/tools/ports'
import type { Clock } from '#kernel/ports/clock'
import type { EffectCall, EffectOutcome, EffectTarget, ToolContract } from '#kernel/ports/effect-target'
import { fitSchema } from '#kernel/tools/fit-schema'
import { constraintsOf } from '../contract.ts'
import { AddressRefusedError } from '../http/address-guard.ts'
import { RequestLostError, RequestNotSentError } from '../http/guarded-request.ts'
import { maskValues } from '../mask-values.ts'
import { failed, observe } from '../observation.ts'
import { MCP_TIME_LIMIT_MS, TooManyMessagesError } from './mcp-session.ts'
import type { McpPlace, McpResult } from './mcp-session.ts'
import type { McpSessions } from './mcp-sessions.ts'
import { offerTools } from './offer.ts'
import type { McpRemote } from './offer.ts'
import { readResult } from './read-result.ts'

export type McpTargetParts = {
  contract: ToolContract
  declaration: ToolDeclaration
  sessions: McpSessions
  place: McpPlace
  sourceId: string
  /** Whom answers are attributed to. */
  source: string
  clock: Clock
  timeLimitMs?: number
  /** Told what the server offers now, where the tool is no longer the accepted one. */
  onChanged?: (offered: readonly OfferedTool[]) => Promise<void>
}

/**
 * One accepted tool of an MCP server. Each call, on its run's session, lists the tools again and compares: a tool that is not the very one
 * that was accepted is not called (`tool_changed`, `tool_gone`). Answers and their errors are untrusted.
 */
export class McpTarget implements EffectTarget {
  readonly #parts: McpTargetParts
  readonly #remote: McpRemote

  constructor(parts: McpTargetParts) {
    this.#parts = parts
    // Written by offerTools, and bound by the tool's version.
    this.#remote = parts.declaration.remote as McpRemote
  }

  enforces(contract: ToolContract) {
    return constraintsOf(contract)
  }

  /** The protocol knows no keys. */
  async lookUp(): Promise<null> {
    return null
  }

  async execute(call: EffectCall): Promise<EffectOutcome> {
    const { contract, declaration, sessions, place, sourceId, timeLimitMs = MCP_TIME_LIMIT_MS } = this.#parts
    const { ownerId, characterId, runId, signal } = call
    if (signal.aborted) return failed('aborted')
    if (fitSchema(declaration.parameters, call.arguments).length > 0) return failed('arguments_invalid')
    let sent = false
    try {
      return await sessions.call({ ownerId, characterId, runId, sourceId, place, signal, timeLimitMs }, async (listed, callTool) => {
        const { offered } = offerTools(listed, TOOLS_PER_SOURCE)
        const now = offered.find((tool) => (tool.declaration.remote as McpRemote).tool === this.#remote.tool)
        if (now?.version !== contract.version) {
          await this.#parts.onChanged?.(offered)
          return failed(now ? 'tool_changed' : 'tool_gone')
        }
        sent = true
        return this.#settle(await callTool(this.#remote.tool, call.arguments))
      })
    } catch (error) {
      const fault = await faultOf(error, signal)
      const happened = sent && !fault.authoritative && contract.consequence === 'lasting'
      return happened ? { type: 'unknown', code: fault.code } : failed(fault.code)
    }
  }

  /** The server's own word that the call failed is taken: it is the only one who knows. */
  #settle(result: McpResult): EffectOutcome {
    const { source, clock, place } = this.#parts
    const headers = place.type === 'http' ? Object.values(place.headers) : Object.values(place.server.env)
    const observation = observe({ text: maskValues(readResult(result), headers), source, at: clock.now(), trust: 'untrusted' })
    return result.isError ? { type: 'failed', code: 'tool_error', observation } : { type: 'done', observation, costMicros: null }
  }
}

/** JSON-RPC errors that say that nothing was begun: parse, request, method, parameters. */
const refusals: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602])

/** Whatever went wrong with a server as a code, and whether it proves that nothing happened. */
export async function faultOf(error: unknown, signal: AbortSignal): Promise<{ code: string; authoritative: boolean }> {
  const { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } = await import('@modelcontextprotocol/client')
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof RequestNotSentError || at instanceof AddressRefusedError) return { code: at.code, authoritative: true }
    if (at instanceof RequestLostError) return { code: at.code, authoritative: false }
    if (at instanceof TooManyMessagesError) return { code: 'too_many_messages', authoritative: false }
    if (at instanceof SdkHttpError) return { code: `http_${at.status}`, authoritative: at.status >= 400 && at.status < 500 }
    if (at instanceof ProtocolError) return { code: 'rpc_error', authoritative: refusals.has(at.code) }
    if (at instanceof SdkError && at.code === SdkErrorCode.RequestTimeout) {
      return { code: signal.aborted ? 'aborted' : 'timeout', authoritative: false }
    }
    if (at instanceof SdkError && at.code !== SdkErrorCode.ConnectionClosed) return { code: at.code.toLowerCase(), authoritative: false }
    if (at.name === 'TimeoutError') return { code: 'timeout', authoritative: false }
    if (at.name === 'AbortError') return { code: signal.aborted ? 'aborted' : 'timeout', authoritative: false }
    if ('code' in at && typeof at.code === 'string' && /^E[A-Z]+$/.test(at.code))
      return { code: 'server_not_started', authoritative: false }
    if (at instanceof SdkError) return { code: signal.aborted ? 'aborted' : 'connection_closed', authoritative: false }
  }
  return { code: signal.aborted ? 'aborted' : 'server_fault', authoritative: false }
}
