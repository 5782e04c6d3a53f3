import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { ConfigError } from '#infra/config/config'
import type { StdioServer } from './mcp-session.ts'

const VARIABLE = 'LINGTAI_MCP_STDIO'

const ServersFile = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,39}$/, 'a name is 1 to 40 small letters, digits, - and _'),
  z.strictObject({
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    env: z.record(z.string(), z.string()).default({}),
    cwd: z.string().nullable().default(null),
  }),
)

/** The MCP servers that the operator's file lists: programs that Lingtai may start. Throws ConfigError. */
export async function readStdioServers(file: string | null): Promise<ReadonlyMap<string, StdioServer>> {
  if (file === null) return new Map()
  const fault = (what: string): ConfigError => new ConfigError([{ variable: VARIABLE, fault: `${what} (${file})` }])
  let json: unknown
  try {
    json = JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw fault(`must be a readable JSON file: ${error instanceof Error ? error.message : String(error)}`)
  }
  const parsed = ServersFile.safeParse(json)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw fault(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'cannot be used'}`)
  }
  return new Map(Object.entries(parsed.data))
}
