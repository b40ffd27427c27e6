import { parse, TomlError } from 'smol-toml'

/**
 * The options of a flat TOML document by name, in lower case with `_` for `-`. Numbers, booleans
 * and dates are kept as text.
 */
export type Options = ReadonlyMap<string, string | readonly string[]>

/** What people have in place of the file, by its first line. */
const otherForms: readonly (readonly [RegExp, string])[] = [
  [
    /^\s*(?:- *)?["']?--?[a-z]/i,
    'write each flag as NAME = VALUE with "_" for "-", such as client_id = "orders"; one that may be repeated is a list with the plural as its name: allowed_groups = ["staff"]',
  ],
  [
    /^\s*(?:---|["']?[\w.-]+["']?:(?:\s|$))/,
    'it is YAML; in values of the Helm chart, the file is the text of config.configFile, and each of extraArgs becomes a line NAME = VALUE in it',
  ],
]

/**
 * Reads a TOML document without tables: `name = value`, where a value is a scalar or a list of
 * scalars.
 * @throws {SyntaxError} with the number of the invalid line; the message does not quote the line,
 * because it may contain a secret
 */
export function readFlatToml(text: string): Options {
  const lines = text.split('\n')
  const first = lines.findIndex((line) => /^\s*[^\s#]/.test(line))
  const [, otherForm] = otherForms.find(([form]) => form.test(lines[first] ?? '')) ?? []
  if (otherForm !== undefined)
    throw new SyntaxError(`line ${first + 1} is not of the file of oauth2-proxy: ${otherForm}`)
  const options = new Map<string, string | readonly string[]>()
  for (const [name, value] of Object.entries(documentIn(text))) {
    const option = name.toLowerCase().replaceAll('-', '_')
    if (options.has(option)) throw new SyntaxError(`line ${lineOf(name, lines)}: ${option} is set twice`)
    const scalars = [value].flat().map((member) => scalarText(member) ?? rejectLine(lineOf(name, lines)))
    options.set(option, Array.isArray(value) ? scalars : (scalars[0] ?? ''))
  }
  return options
}

function documentIn(text: string): object {
  try {
    return parse(text, { integersAsBigInt: 'asNeeded', unsafeKeyBehaviour: 'throw' })
  } catch (error) {
    // The message of the error quotes the line.
    if (error instanceof TomlError) rejectLine(error.line)
    throw error
  }
}

/** The text of a string, a number, a boolean or a date; `undefined` for a table or a list. */
function scalarText(value: unknown): string | undefined {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? undefined : String(value)
}

/** The number of the line that sets a name, or opens a table with it. */
function lineOf(name: string, lines: readonly string[]): number {
  const index = lines.findIndex((line) => {
    const text = line.replace(/^[\s["']+/, '')
    return text.startsWith(name) && /^["']?\s*[=.\]]/.test(text.slice(name.length))
  })
  return index + 1
}

function rejectLine(line: number): never {
  throw new SyntaxError(
    `line ${line} is invalid: write NAME = VALUE, where VALUE is a "string", a number, true, false, or a list of these in brackets`,
  )
}
