/** Ordered parts and delta segments inside a content's body: UTF-16 ranges; salts are base64 (decisions 11, 12). */
export type ContentLayout = {
  parts: readonly { kind: 'text' | 'reasoning' | 'steer' | 'tool_call' | 'tool_result_ref' | 'media_ref'; from: number; to: number }[]
  segments?: readonly { part: number; from: number; to: number; salt: string }[]
}

export type NewContent = {
  /** Reserved beforehand where something already points at it. */
  id?: string
  owner_id: string
  media_type: string
  content: string | Uint8Array
  /** 32 random bytes, where the digest had to be known before the content was stored. */
  salt?: Uint8Array
  layout?: ContentLayout
  derived_from?: readonly string[]
}

/** `body`/`bytes` are null once erased; the digest stays as proof. */
export type StoredContent = {
  id: string
  owner_id: string
  media_type: string
  body: string | null
  bytes: Uint8Array | null
  layout: ContentLayout | null
  salt: Uint8Array | null
  digest: Uint8Array
  size: number
  erased: boolean
}

/** All text of the instance, by id, with salted digests in the log (decision 10). */
export interface ContentStore {
  put(content: NewContent): Promise<{ id: string; digest: Uint8Array }>
  /** As `put` for many, in order, in few statements. Their texts have no layout. */
  putMany(contents: readonly Omit<NewContent, 'layout'>[]): Promise<{ id: string; digest: Uint8Array }[]>
  /** Missing ids are missing from the map. */
  get(ids: readonly string[]): Promise<Map<string, StoredContent>>
  /** Erases the contents and everything derived from them, and records each in the ledger and the log; answers all erased ids (decision 13). */
  erase(input: { ids: readonly string[]; cause: string }): Promise<string[]>
}
