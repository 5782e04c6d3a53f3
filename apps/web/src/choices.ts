import type * as contracts from '#contracts'

// The dictionary's choices as plain lists: importing the schemas themselves would bring the whole validator into the page. A choice that is
// missing here, or is none, does not compile.
const exactly =
  <T extends string>() =>
  <const L extends readonly T[]>(list: L & ([Exclude<T, L[number]>] extends [never] ? unknown : never)): L =>
    list

export const MemoryLevel = exactly<contracts.MemoryLevel>()(['trace', 'explicit', 'heavy'])
export const MemoryType = exactly<contracts.MemoryType>()(['fact', 'preference', 'event', 'plan', 'promise', 'relationship_view'])
export const MemoryState = exactly<contracts.MemoryState>()(['proposed', 'live', 'rejected', 'undone', 'withdrawn', 'deleted', 'merged'])
export const RunState = exactly<contracts.RunState>()(['queued', 'running', 'suspended', 'finished', 'interrupted', 'failed'])
export const TokenScope = exactly<contracts.TokenScope>()(['read', 'write', 'admin', 'approve'])
export const OwnerRole = exactly<contracts.OwnerRole>()(['user', 'admin'])
export const CapabilityClass = exactly<contracts.CapabilityClass>()([
  'read_only',
  'reversible_local',
  'code_executing',
  'trust_mutating',
  'irreversible_external',
])
export const PermissionMode = exactly<contracts.PermissionMode>()(['plan', 'default', 'auto'])
