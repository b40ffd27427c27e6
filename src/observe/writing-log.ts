import pino from 'pino'
import { createAudit } from './audit.ts'
import { type DroppedLines, isNonBlocking, Lines } from './lines.ts'
import type { Log } from './log.ts'
import { pretty } from './pretty.ts'

export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Standard output when absent. */
  readonly stream?: 'stdout' | 'stderr'
  /** Lines of JSON when absent. */
  readonly format?: 'json' | 'pretty' | 'pretty_in_color'
  /** Other processes write into the same stream. */
  readonly isShared?: boolean
}

/** A log that writes. */
export interface WritingLog extends Log {
  /**
   * Adds a complete line of JSON with its line break. It may wait to be written with others.
   */
  readonly add: (line: string) => void
  /** Writes audit events, with the level info. Other lines never displace them. */
  readonly audit: Pick<Log, 'info'>
  /** Whether lines of this level are written. */
  isWritten(level: LogOptions['level']): boolean
  /** The number of lines that were dropped because nothing read them. */
  dropped(): DroppedLines
  /**
   * Resolves with `true` when all lines are written, or with `false` after `limitMs` because
   * nothing reads them.
   */
  flush(limitMs: number): Promise<boolean>
}

/**
 * Creates a log on standard output or standard error. It never blocks the gateway: lines are
 * dropped when nothing reads them.
 */
export function createLog(options: LogOptions): WritingLog {
  const { level, stream = 'stdout', format = 'json', isShared = false } = options
  const formatLine = format === 'json' ? undefined : (line: string) => pretty(line, format === 'pretty_in_color')
  const to = { fd: stream === 'stdout' ? 1 : 2, isShared, isNonBlocking: () => !isShared && isNonBlocking(stream) }
  const lines = new Lines({ ...to, formatLine }, (dropped) => {
    if (dropped.lines > 0) always.warn({ lines: dropped.lines }, 'log.dropped')
    if (dropped.auditEvents > 0) createAudit(audit).record('audit.dropped', { events: dropped.auditEvents })
  })
  const logger = pino(pinoOptions(level), lines)
  const always = logger.child({}, { level: 'info' })
  const auditor = pino(pinoOptions(level), { write: (line) => lines.write(line, 'audit') })
  const audit: WritingLog['audit'] = { info: (message, fields) => auditor.info(fields ?? {}, message) }
  return {
    add: (line) => lines.add(line, 'access'),
    audit,
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

function pinoOptions(level: LogOptions['level']): pino.LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
}
