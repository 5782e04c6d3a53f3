import type { LoggerService } from '@nestjs/common'
import type { Logger } from 'pino'

/** NestJS's own words in our log; what it says of a start that went well is left out. */
export class NestLogger implements LoggerService {
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  log(): void {
    // Modules and routes as they are found: nothing an operator asks for.
  }

  warn(message: unknown): void {
    this.#logger.warn({ framework: String(message) }, 'warning of the framework')
  }

  error(message: unknown, ...details: unknown[]): void {
    this.#logger.error({ framework: String(message), details: details.map(String) }, 'error of the framework')
  }

  fatal(message: unknown): void {
    this.#logger.fatal({ framework: String(message) }, 'the framework gave up')
  }
}
