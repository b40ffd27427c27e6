import type { LogSettings } from '../config/settings.ts'
import type { LogOptions } from '../observe/writing-log.ts'
import type { Terminal } from './command.ts'

/**
 * Resolves `log.format` for a stream, where `isTTY` says whether the stream is a terminal. NO_COLOR
 * turns colors off (no-color.org).
 */
export function logFormat(
  format: LogSettings['format'],
  isTTY: boolean,
  env: Terminal['env'],
): NonNullable<LogOptions['format']> {
  if (format === 'json' || (format === 'auto' && !isTTY)) return 'json'
  return isTTY && !env['NO_COLOR'] ? 'pretty_in_color' : 'pretty'
}
