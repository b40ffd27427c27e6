import type { LogSettings } from '../config/settings.ts'
import type { LogOptions } from '../observe/writing-log.ts'

const codes = { red: 31, green: 32, yellow: 33, cyan: 36, grey: 90, bold: 1 } as const

/** Colors a text for a terminal, or returns it unchanged. */
export type Paint = (color: keyof typeof codes, text: string) => string

export const withColors: Paint = (color, text) => `\u001b[${codes[color]}m${text}\u001b[0m`
export const withoutColors: Paint = (_color, text) => text

/** Colors are on for a terminal, unless NO_COLOR or TERM=dumb turns them off (no-color.org). */
export function paintFor(isTTY: boolean, env: Readonly<Record<string, string | undefined>>): Paint {
  const { NO_COLOR = '', TERM = '' } = env
  return isTTY && NO_COLOR === '' && TERM !== 'dumb' ? withColors : withoutColors
}

/**
 * Resolves `log.format` for a stream, where `isTTY` says whether the stream is a terminal. NO_COLOR
 * turns colors off (no-color.org).
 */
export function logFormat(
  format: LogSettings['format'],
  isTTY: boolean,
  env: Readonly<Record<string, string | undefined>>,
): NonNullable<LogOptions['format']> {
  if (format === 'json' || (format === 'auto' && !isTTY)) return 'json'
  return isTTY && !env['NO_COLOR'] ? 'pretty_in_color' : 'pretty'
}
