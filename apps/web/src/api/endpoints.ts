import type {
  AdminRun,
  ApprovalView,
  Ask,
  AuditEvent,
  Canonized,
  CanonizationView,
  CharacterVersionView,
  CharacterView,
  CommandAccepted,
  CreateCharacter,
  CreateCharacterVersion,
  CreatedOwner,
  CreatedToken,
  CreateTree,
  DecideApproval,
  Edited,
  EffectView,
  Explanation,
  GrantView,
  HeadMoved,
  ImportedCharacter,
  ImportedLorebook,
  KillFlag,
  LorebookView,
  MemoryDetail,
  MemoryView,
  NodeView,
  Outline,
  OutboxPage,
  OwnerRole,
  OwnerView,
  PathView,
  ProjectedContext,
  RealmView,
  ReconcileEffect,
  RecallAuditView,
  RunAccepted,
  RunView,
  SessionView,
  SetGrant,
  TokenScope,
  TokenView,
  ToolView,
  TreeView,
  UserPersonaView,
  VerifyReport,
} from '#contracts'
import type { Query } from './client.ts'
import { request } from './client.ts'

export type Page<T> = { items: T[]; next_cursor: string | null }
export type OutboxRow = ReturnType<(typeof OutboxPage)['parse']>['items'][number]
type Items<T> = { items: T[] }

export const sessionApi = {
  read: () => request<SessionView>('/v1/session'),
  redeem: (secret: string) => request<SessionView>('/v1/session', { method: 'POST', json: { secret } }),
  signOut: () => request<void>('/v1/session', { method: 'DELETE' }),
  tokens: () => request<Items<TokenView>>('/v1/tokens'),
  createToken: (name: string, scopes: TokenScope[]) => request<CreatedToken>('/v1/tokens', { method: 'POST', json: { name, scopes } }),
  revokeToken: (id: string) => request<void>(`/v1/tokens/${id}`, { method: 'DELETE' }),
  personas: () => request<Items<UserPersonaView>>('/v1/personas'),
  createPersona: (name: string, description: string) =>
    request<UserPersonaView>('/v1/personas', { method: 'POST', json: { name, description } }),
}

export const characterApi = {
  list: () => request<Page<CharacterView>>('/v1/characters', { query: { limit: 200 } }),
  read: (id: string) => request<CharacterView>(`/v1/characters/${id}`),
  create: (fields: CreateCharacter) => request<CharacterView>('/v1/characters', { method: 'POST', json: fields }),
  importCard: (file: Blob, type: string) =>
    request<ImportedCharacter>('/v1/characters/import', { method: 'POST', raw: { body: file, type } }),
  accept: (id: string) => request<CharacterView>(`/v1/characters/${id}/accept`, { method: 'POST' }),
  remove: (id: string) => request<void>(`/v1/characters/${id}`, { method: 'DELETE' }),
  versions: (id: string) => request<Items<CharacterVersionView>>(`/v1/characters/${id}/versions`),
  addVersion: (id: string, fields: CreateCharacterVersion) =>
    request<CharacterView>(`/v1/characters/${id}/versions`, { method: 'POST', json: fields }),
  realms: () => request<Items<RealmView>>('/v1/realms'),
  createRealm: (kind: string, name: string) => request<RealmView>('/v1/realms', { method: 'POST', json: { kind, name } }),
  lorebooks: () => request<Items<LorebookView>>('/v1/lorebooks'),
  importLorebook: (file: Blob, characterId: string) =>
    request<ImportedLorebook>('/v1/lorebooks/import', {
      method: 'POST',
      query: { character_id: characterId },
      raw: { body: file, type: 'application/json' },
    }),
  avatarUrl: (id: string, version: number) => `/v1/characters/${id}/avatar?v=${version}`,
  exportUrl: (id: string, format: 'json-v2' | 'json-v3' | 'png') => `/v1/characters/${id}/export?format=${format}`,
}

export const treeApi = {
  list: (query: Query = {}) => request<Page<TreeView>>('/v1/trees', { query: { limit: 200, ...query } }),
  create: (tree: Partial<CreateTree> & { character_id: string }) => request<TreeView>('/v1/trees', { method: 'POST', json: tree }),
  rename: (id: string, title: string) => request<TreeView>(`/v1/trees/${id}`, { method: 'PATCH', json: { title } }),
  remove: (id: string) => request<void>(`/v1/trees/${id}`, { method: 'DELETE' }),
  outline: (id: string, query: Query, signal?: AbortSignal) => request<Outline>(`/v1/trees/${id}/outline`, { query, signal }),
  path: (id: string, query: Query, signal?: AbortSignal) => request<PathView>(`/v1/trees/${id}/path`, { query, signal }),
  ask: (id: string, ask: Omit<Ask, 'citations'> & Partial<Pick<Ask, 'citations'>>) =>
    request<RunAccepted>(`/v1/trees/${id}/runs`, { method: 'POST', json: ask }),
  canonizations: (id: string) => request<Items<CanonizationView>>(`/v1/trees/${id}/canonizations`),
  withdraw: (canonizationId: string) => request<CanonizationView>(`/v1/canonizations/${canonizationId}/withdraw`, { method: 'POST' }),
}

export const nodeApi = {
  read: (id: string) => request<NodeView>(`/v1/nodes/${id}`),
  remove: (id: string, withdraw: boolean) => request<void>(`/v1/nodes/${id}`, { method: 'DELETE', query: { withdraw } }),
  regenerate: (id: string) => request<RunAccepted>(`/v1/nodes/${id}/regenerate`, { method: 'POST', json: {} }),
  edit: (id: string, text: string) => request<Edited>(`/v1/nodes/${id}/edit`, { method: 'POST', json: { text } }),
  fork: (id: string) => request<HeadMoved>(`/v1/nodes/${id}/fork`, { method: 'POST' }),
  adopt: (id: string) => request<HeadMoved>(`/v1/nodes/${id}/adopt`, { method: 'POST' }),
  canonize: (id: string) => request<Canonized>(`/v1/nodes/${id}/canonize`, { method: 'POST' }),
}

export const runApi = {
  read: (id: string, signal?: AbortSignal) => request<RunView>(`/v1/runs/${id}`, { signal }),
  cancel: (id: string) => request<CommandAccepted>(`/v1/runs/${id}/cancel`, { method: 'POST' }),
  goOn: (id: string) => request<RunAccepted>(`/v1/runs/${id}/continue`, { method: 'POST' }),
  steer: (id: string, text: string) => request<CommandAccepted>(`/v1/runs/${id}/steer`, { method: 'POST', json: { text } }),
  explanation: (id: string, turn?: number) => request<Explanation>(`/v1/runs/${id}/explanation`, { query: { turn } }),
}

export const memoryApi = {
  list: (query: Query) => request<Page<MemoryView>>('/v1/memories', { query }),
  read: (id: string) => request<MemoryDetail>(`/v1/memories/${id}`),
  remove: (id: string) => request<void>(`/v1/memories/${id}`, { method: 'DELETE' }),
  confirm: (id: string, text?: string) =>
    request<MemoryView>(`/v1/memories/${id}/confirm`, { method: 'POST', json: text === undefined ? {} : { text } }),
  reject: (id: string) => request<MemoryView>(`/v1/memories/${id}/reject`, { method: 'POST' }),
  undo: (id: string) => request<MemoryView>(`/v1/memories/${id}/undo`, { method: 'POST' }),
  correct: (id: string, text: string, version: number) =>
    request<MemoryView>(`/v1/memories/${id}/versions`, { method: 'POST', json: { text, version } }),
  search: (characterId: string, query: string) =>
    request<{ audit: RecallAuditView }>('/v1/memories/search', { method: 'POST', json: { character_id: characterId, query, limit: 8 } }),
  recalls: (query: Query) => request<Page<RecallAuditView>>('/v1/recalls', { query }),
}

/** A place that grants: the owner's own, or a character's. */
export type GrantPlace = { scope: 'owner' } | { scope: 'character'; id: string }

const grantPath = (place: GrantPlace) => (place.scope === 'owner' ? '/v1/grant' : `/v1/characters/${place.id}/grant`)

export const actionApi = {
  approvals: (query: Query) => request<Page<ApprovalView>>('/v1/approvals', { query }),
  approval: (id: string) => request<ApprovalView>(`/v1/approvals/${id}`),
  decide: (id: string, answer: DecideApproval) => request<ApprovalView>(`/v1/approvals/${id}/decision`, { method: 'POST', json: answer }),
  effects: () => request<Items<EffectView>>('/v1/effects'),
  reconcile: (id: string, as: ReconcileEffect['as']) =>
    request<EffectView>(`/v1/effects/${id}/reconcile`, { method: 'POST', json: { as } }),
  tools: () => request<Items<ToolView>>('/v1/tools'),
  grant: (place: GrantPlace) => request<GrantView>(grantPath(place)),
  setGrant: (place: GrantPlace, grant: SetGrant) => request<GrantView>(grantPath(place), { method: 'PUT', json: grant }),
}

export const adminApi = {
  runs: (query: Query) => request<Page<AdminRun>>('/v1/admin/runs', { query }),
  context: (id: string, turn?: number) => request<ProjectedContext>(`/v1/admin/runs/${id}/context`, { query: { turn } }),
  replay: (id: string) => request<ProjectedContext>(`/v1/admin/runs/${id}/replay`, { method: 'POST' }),
  verify: () => request<VerifyReport>('/v1/admin/verify', { method: 'POST' }),
  outbox: (cursor?: string) => request<Page<OutboxRow>>('/v1/admin/outbox', { query: { cursor } }),
  events: (query: Query) => request<Page<AuditEvent>>('/v1/admin/events', { query }),
  killFlags: () => request<Items<KillFlag>>('/v1/admin/kill'),
  setKill: (scope: string, id: string) => request<void>(`/v1/admin/kill/${scope}/${id}`, { method: 'PUT' }),
  liftKill: (scope: string, id: string) => request<void>(`/v1/admin/kill/${scope}/${id}`, { method: 'DELETE' }),
  owners: () => request<Items<OwnerView>>('/v1/owners'),
  createOwner: (name: string, role: OwnerRole) => request<CreatedOwner>('/v1/owners', { method: 'POST', json: { name, role } }),
}
