import type { Clock } from '#kernel/ports/clock'

/** The real time and what a test adds to it, in milliseconds. */
export class MovedClock implements Clock {
  ahead = 0

  now(): Date {
    return new Date(Date.now() + this.ahead)
  }
}
