import pino from 'pino'
import { Lines } from './lines.ts'
import { pretty } from './pretty.ts'

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

export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Standard output when absent. */
  readonly stream?: 'stdout' | 'stderr'
  /** Lines of JSON when absent. */
  readonly format?: 'json' | 'pretty' | 'pretty_in_colour'
  /** Other processes write into the same stream. */
  readonly isShared?: boolean
}

/** A log that writes. */
export interface WritingLog extends Log {
  /** Takes a line of JSON that is complete, its line break included, and may wait a moment to be written with others. */
  readonly add: (line: string) => void
  /** Whether lines of this level are written. */
  isWritten(level: LogOptions['level']): boolean
  /** How many lines were dropped because nobody read them. */
  dropped(): number
  /** Resolves when all lines are written, or with `false` after `limitMs`: whoever should read them does not. */
  flush(limitMs: number): Promise<boolean>
}

/** Lines, one each, on standard output (or error). Whatever becomes of their reader, the gateway serves: lines are lost instead. */
export function createLog(options: LogOptions): WritingLog {
  const { level, stream = 'stdout', format = 'json', isShared = false } = options
  const shape = format === 'json' ? undefined : (line: string) => pretty(line, format === 'pretty_in_colour')
  const lines = new Lines({ fd: stream === 'stdout' ? 1 : 2, isShared, shape }, (dropped) =>
    always.warn({ lines: dropped }, 'log.dropped'),
  )
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    lines,
  )
  const always = logger.child({}, { level: 'info' })
  return {
    add: (line) => lines.add(line),
    isWritten: (wanted) => logger.isLevelEnabled(wanted),
    dropped: () => lines.dropped,
    flush: (limitMs) => lines.flush(limitMs),
    announce: (message, fields) => always.info(fields ?? {}, message),
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
  }
}
