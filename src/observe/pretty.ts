import { ownMember } from '../core/json.ts'
const colors: Readonly<Record<string, string>> = { debug: '90', info: '32', warn: '33', error: '31' }

/** Characters that are escaped, because a terminal would interpret some of them. */
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** A line of the log for a person at a terminal: `12:34:56.789 info  session.created sub=jane`. */
export function pretty(line: string, inColor: boolean): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const paint = (code: string, text: string) => (inColor ? `\u001b[${code}m${text}\u001b[0m` : text)
  const shown = Object.entries(fields).map(([name, value]) => `${paint('90', `${name}=`)}${valueText(value)}`)
  const head = [
    paint('90', String(time).slice(11, 23)),
    paint(ownMember(colors, String(level)) ?? '0', String(level).padEnd(5)),
    valueText(msg, /[^\n]*/),
  ]
  return `${[...head, ...shown].join(' ')}\n`
}

/** A text without quotes when its end is clear, otherwise in quotes. */
function valueText(value: unknown, plain = /[^\s"=]+/): string {
  const text = typeof value === 'string' && plain.exec(value)?.[0] === value ? value : JSON.stringify(value)
  return text.replaceAll(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
