import type { EndpointQuirks } from '#runtime/turn/ports'
import type { Sql } from './sql.ts'

/** `endpoint_quirks` in Postgres, one model's row. Read until it is there, then remembered. */
export class EndpointQuirksRepository implements EndpointQuirks {
  readonly #sql: Sql
  readonly #key: readonly [endpoint: string, model: string]
  #takesStreamOptions: boolean | null = null

  constructor(sql: Sql, { baseUrl, model }: { baseUrl: string; model: string }) {
    const { origin, pathname } = new URL(baseUrl)
    this.#sql = sql
    // No more of the address: credentials and keys may stand in the rest.
    this.#key = [origin + pathname, model]
  }

  async takesStreamOptions(): Promise<boolean> {
    this.#takesStreamOptions ??= await this.#read()
    return this.#takesStreamOptions ?? true
  }

  async keep(takesStreamOptions: boolean): Promise<void> {
    if (this.#takesStreamOptions === false || this.#takesStreamOptions === takesStreamOptions) return
    await this.#sql.execute(
      `INSERT INTO endpoint_quirks (endpoint, model, takes_stream_options) VALUES ($1, $2, $3)
       ON CONFLICT (endpoint, model) DO UPDATE SET takes_stream_options = false, found_at = now()
       WHERE endpoint_quirks.takes_stream_options AND NOT excluded.takes_stream_options`,
      [...this.#key, takesStreamOptions],
    )
    this.#takesStreamOptions = await this.#read()
  }

  async #read(): Promise<boolean | null> {
    const [row] = await this.#sql.query<{ takes_stream_options: boolean }>(
      'SELECT takes_stream_options FROM endpoint_quirks WHERE endpoint = $1 AND model = $2',
      this.#key,
    )
    return row?.takes_stream_options ?? null
  }
}
