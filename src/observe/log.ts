/**
 * What may stand beside an event: plain values only, so that nobody logs a whole request, token set
 * or error by accident.
 */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined | readonly string[]>>

/** Structured lines on standard output. Never a token, cookie value, secret or e-mail address. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A line that is written whatever the level is. */
  announce(message: string, fields?: LogFields): void
}
