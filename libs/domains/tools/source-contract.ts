import { CapabilityClass } from '#contracts'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { SourceKind, SourceToolRow } from './ports.ts'

/** `http/weather.today`, `mcp/files.read_file`. */
export function fullName(kind: SourceKind, sourceName: string, toolName: string): string {
  return `${kind === 'mcp' ? 'mcp' : 'http'}/${sourceName}.${toolName}`
}

export function higherClass(left: CapabilityClass, right: CapabilityClass): CapabilityClass {
  const order = CapabilityClass.options
  return order.indexOf(left) >= order.indexOf(right) ? left : right
}

/** The contract of a source's tool: the owner's class where it is not below the floor; only what reads leaves nothing behind. */
export function contractOfSource(kind: SourceKind, sourceName: string, tool: SourceToolRow): ToolContract {
  const { declaration, capability: chosen } = tool
  const capability = higherClass(declaration.floor, chosen ?? declaration.usual)
  return {
    name: fullName(kind, sourceName, tool.name),
    description: declaration.description,
    parameters: declaration.parameters,
    capability,
    consequence: capability === 'read_only' ? 'none' : 'lasting',
    egress: declaration.egress,
    undoable: false,
    priceMicros: declaration.price_micros,
    version: tool.version,
  }
}

/** Whether it is a tool at all: what is offered now is what its owner accepted. */
export function isAccepted(tool: SourceToolRow): boolean {
  return !tool.missing && tool.accepted_version === tool.version
}
