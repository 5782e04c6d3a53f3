import { limits } from './limits.ts'

/** Why a file was refused. Stable: the API shows it as the problem's `code`. */
export type CardErrorCode =
  | 'bad_base64'
  | 'empty_file'
  | 'invalid_utf8'
  | 'missing_name'
  | 'no_card_in_png'
  | 'not_json'
  | 'not_lorebook'
  | 'not_object'
  | 'not_png'
  | 'nul_character'
  | 'number_too_long'
  | 'png_bad_chunk'
  | 'png_bad_crc'
  | 'png_truncated'
  | 'too_deep'
  | 'too_large'
  | 'too_many_items'
  | 'too_many_values'
  | 'unsupported_format'
  | 'wrong_number'

/** A card or lorebook file that cannot be read or written. `path` names the field (`data.tags[3]`), or is empty for the file itself. */
export class CardError extends Error {
  override readonly name = 'CardError'
  readonly code: CardErrorCode
  readonly path: string

  constructor(code: CardErrorCode, path: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.path = path
  }
}

/** What was odd in a file that was read all the same. */
export type FindingCode =
  | 'asset_unreadable'
  | 'blank_key'
  | 'byte_order_mark'
  | 'coerced'
  | 'data_missing'
  | 'decorator_ignored'
  | 'duplicate_chunk'
  | 'duplicate_key'
  | 'entry_not_object'
  | 'findings_left_out'
  | 'fallback_to_chara'
  | 'lone_surrogate'
  | 'name_from_root'
  | 'no_keys'
  | 'prototype_key'
  | 'regex_as_literal'
  | 'spec_missing'
  | 'trailing_bytes'
  | 'unknown_spec'
  | 'unknown_spec_version'
  | 'world_info_in_card'
  | 'wrong_type'

/** One line of an import report: where (`data.character_book.entries[2].keys[0]`), what, and what was done about it. */
export interface Finding {
  path: string
  code: FindingCode
  message: string
}

/** Gathers findings up to a bound; what is past it is counted in a last line, so that a hostile file cannot make a huge report. */
export class Report {
  readonly #findings: Finding[] = []
  #leftOut = 0

  add(path: string, code: FindingCode, message: string): void {
    if (this.#findings.length < limits.findings) this.#findings.push({ path, code, message })
    else this.#leftOut += 1
  }

  list(): Finding[] {
    if (this.#leftOut === 0) return [...this.#findings]
    return [...this.#findings, { path: '', code: 'findings_left_out', message: `${this.#leftOut} more findings are not listed` }]
  }
}
