/**
 * The fields of an event. Only plain values are allowed, so that no code logs a request, token set
 * or error object by accident.
 */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined | readonly string[]>>

/** Structured lines on standard output. Never a token, cookie value, secret or e-mail address. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** Writes a line at any log level. */
  announce(message: string, fields?: LogFields): void
}
