import { NotesService } from '#domains/tools/notes.service'
import { ToolSourcesService } from '#domains/tools/tool-sources.service'
import { ConfigError } from '#infra/config/config'
import { GivenKeys, HomeKeys } from '#infra/crypto/key-ring'
import { AesSecretBox } from '#infra/crypto/secret-box'
import type { DelegationDesk } from '#infra/executors/builtin/delegate'
import { builtinTools } from '#infra/executors/builtin/index'
import { JoinedCatalogue } from '#infra/executors/catalogue'
import { AddressGuard } from '#infra/executors/http/address-guard'
import { McpSessions } from '#infra/executors/mcp/mcp-sessions'
import { readStdioServers } from '#infra/executors/mcp/stdio-servers'
import { Sandbox } from '#infra/executors/sandbox/sandbox'
import { sandboxTool } from '#infra/executors/sandbox/sandbox-tool'
import { DeclarationReader } from '#infra/executors/source-reader'
import { SourceTools } from '#infra/executors/source-tools'
import { NotesRepository } from '#infra/prisma/notes.repository'
import { RunRepository } from '#infra/prisma/run.repository'
import { ToolSourcesRepository } from '#infra/prisma/tool-sources.repository'
import { TreeRepository } from '#infra/prisma/tree.repository'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import type { Memory } from './compose-memory.ts'
import type { Foundation } from './foundation.ts'

export type Tools = {
  catalogue: ToolCatalogue
  notes: NotesService
  sources: ToolSourcesService
  /** Who takes on what is handed on: tasks stand on the tools, and so come later. */
  handOnTo(desk: DelegationDesk): void
  /** This process is done with a run, for now or for good: what is kept open for it is closed. */
  leaveRun(runId: string): void
}

/** What tools there are and what they do (百工). Whether one may act is decided elsewhere. */
export async function composeTools(foundation: Foundation, memory: Pick<Memory, 'recalls'>): Promise<Tools> {
  const { config, database, contents, log, clock, ids, version, listening, lifecycle } = foundation
  const notes = new NotesService({ unit: database, store: new NotesRepository(database), contents, clock, ids })
  let desk: DelegationDesk | null = null
  const deskOf = (): DelegationDesk => {
    if (!desk) throw new Error('work is handed on before there are tasks')
    return desk
  }
  const builtin = [
    ...builtinTools({
      trees: new TreeRepository(database),
      runs: new RunRepository(database),
      recalls: memory.recalls,
      notes,
      desk: {
        delegate: (order) => deskOf().delegate(order),
        find: (ownerId, actionId) => deskOf().find(ownerId, actionId),
      },
      clock,
      ids,
    }),
    sandboxTool({ sandbox: new Sandbox(), clock }),
  ]
  const store = new ToolSourcesRepository(database)
  const secrets = await composeSecrets(foundation, store)
  const reaching = {
    guard: new AddressGuard({ allowed: config.tools.hosts, ownPorts: () => [...listening] }),
    servers: await readStdioServers(config.tools.mcpServersFile),
    version,
  }
  const sources = new ToolSourcesService({
    unit: database,
    store,
    reader: new DeclarationReader(reaching),
    secrets,
    log,
    clock,
    ids,
    builtin: builtin.map((tool) => tool.contract),
  })
  const sessions = new McpSessions({ version })
  lifecycle.onClose('tool servers', () => sessions.close())
  const declared = new SourceTools({
    ...reaching,
    sessions,
    store,
    secrets,
    clock,
    onOffered: (source, offered) => sources.noteOffered(source, offered),
  })
  return {
    catalogue: new JoinedCatalogue({ builtin, others: [declared] }),
    notes,
    sources,
    handOnTo: (given) => void (desk = given),
    leaveRun: (runId) => sessions.leaveRun(runId),
  }
}

/** The light tier has a key of its own; the full one has the operator's, and does not start without it once something is encrypted. */
async function composeSecrets({ config, ids }: Foundation, store: ToolSourcesRepository): Promise<AesSecretBox> {
  if (config.tier === 'light') return new AesSecretBox({ keys: new HomeKeys({ given: config.secretKeys, home: config.home, ids }), ids })
  if (config.secretKeys.length === 0 && (await store.hasSecrets())) {
    throw new ConfigError([
      {
        variable: 'LINGTAI_SECRET_KEYS',
        fault: 'is missing, while headers of tool sources are encrypted with one of its keys; set it again, or delete those sources',
      },
    ])
  }
  return new AesSecretBox({ keys: new GivenKeys(config.secretKeys), ids })
}
