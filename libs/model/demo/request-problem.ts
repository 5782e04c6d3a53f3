/** A request that the demo model cannot answer: status and code as OpenAI's errors have them. */
export class RequestProblem extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.name = 'RequestProblem'
    this.status = status
    this.code = code
  }
}
