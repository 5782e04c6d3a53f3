/** Bounds for files that come from outside (decisions 7 and 9). Sizes in bytes, counts in items. */
export const limits = {
  /** Largest card or lorebook file. */
  fileBytes: 16 * 1024 * 1024,
  /** Containers inside containers in any JSON. */
  depth: 64,
  /** A stand-alone lorebook may later be embedded in a card, which adds levels above it. */
  lorebookDepth: 60,
  /** JSON values in one document: a 16 MB file of `[],[],…` would otherwise need a gigabyte of memory. */
  jsonValues: 500_000,
  /** Characters of one number. */
  numberCharacters: 1_000,
  /** Entries of one lorebook. */
  bookEntries: 20_000,
  /** Items of any other list: greetings, tags, keys of an entry, assets. */
  listItems: 2_000,
  /** Chunks of one PNG. */
  pngChunks: 20_000,
  /** Findings kept in one report; the rest is counted. */
  findings: 500,
} as const
