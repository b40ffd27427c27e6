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

/** So much may wait to be written, in bytes; what comes on top is dropped. */
const mostWaiting = 1024 * 1024

/** A log that writes. */
export interface WritingLog extends Log {
  /** Resolves when all lines are written, or with `false` after `limitMs`: whoever should read them does not. */
  flush(limitMs: number): Promise<boolean>
}

/** Lines of JSON, one each, on standard output (or error). Whatever becomes of their reader, the gateway serves: lines are lost instead. */
export function createLog(
  level: 'debug' | 'info' | 'warn' | 'error',
  stream: 'stdout' | 'stderr' = 'stdout',
): WritingLog {
  // Written synchronously, a pipe that is full would stop the whole process.
  const destination = pino.destination({
    fd: stream === 'stdout' ? 1 : 2,
    sync: false,
    minLength: 1,
    maxLength: mostWaiting,
  })
  // EPIPE and a full disk.
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
    flush: (limitMs) =>
      new Promise((resolve) => {
        const limit = setTimeout(() => resolve(false), limitMs)
        // It also syncs, which a pipe refuses: that it answers at all says that everything is written.
        destination.flush(() => {
          clearTimeout(limit)
          resolve(true)
        })
      }),
    announce: (message, fields) => always.info(fields ?? {}, message),
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
  }
}
