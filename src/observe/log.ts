import pino from 'pino'

/** What may stand beside an event: plain values only, so that nobody logs a whole request, token set or error by accident. */
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

/** Lines of JSON, one each, on standard output. A broken pipe loses lines and nothing else. */
export function createLog(level: 'debug' | 'info' | 'warn' | 'error'): Log {
  const destination = pino.destination({ fd: 1, sync: true })
  // EPIPE and a full disk: a gateway that cannot log still has to serve.
  destination.on('error', () => {})
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  )
  const always = logger.child({}, { level: 'info' })
  return {
    announce: (message, fields) => always.info(fields ?? {}, message),
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
  }
}
