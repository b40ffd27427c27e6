const codes = { red: 31, green: 32, yellow: 33, cyan: 36, grey: 90, bold: 1 } as const

/** Puts a colour around a text, or leaves it as it is. */
export type Paint = (colour: keyof typeof codes, text: string) => string

export const inColours: Paint = (colour, text) => `\u001b[${codes[colour]}m${text}\u001b[0m`
export const plainly: Paint = (_colour, text) => text

/** Colours are for people at a terminal who have not asked for none (no-color.org). */
export function paintFor(isTTY: boolean, env: Readonly<Record<string, string | undefined>>): Paint {
  const { NO_COLOR = '', TERM = '' } = env
  return isTTY && NO_COLOR === '' && TERM !== 'dumb' ? inColours : plainly
}
