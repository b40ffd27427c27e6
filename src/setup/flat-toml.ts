/**
 * The options of a flat TOML document by name, in lower case with `_` for `-`. Numbers and booleans
 * are kept as text.
 */
export type Options = ReadonlyMap<string, string | readonly string[]>

interface Token {
  readonly kind: 'bare' | 'text' | 'end_of_line' | '=' | '[' | ']' | ','
  readonly text: string
  readonly line: number
}

const token =
  /(?:[ \t]|#[^\n]*)+|(?<end_of_line>\r?\n)|(?<basic>"(?:[^"\\\n]|\\.)*")(?!")|(?<literal>'[^'\n]*')(?!')|(?<bare>[\w+.:-]+)|(?<sign>[=[\],])/y

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
 * Reads the part of TOML that a flat configuration file needs: `name = value`, where a value is a
 * string on one line, a number, a boolean, or a list of these.
 * @throws {SyntaxError} with the number of the invalid line; the message does not quote the line,
 * because it may contain a secret
 */
export function readFlatToml(text: string): Options {
  const lines = text.split('\n')
  const first = lines.findIndex((line) => /^\s*[^\s#]/.test(line))
  const [, otherForm] = otherForms.find(([form]) => form.test(lines[first] ?? '')) ?? []
  if (otherForm !== undefined)
    throw new SyntaxError(`line ${first + 1} is not of the file of oauth2-proxy: ${otherForm}`)
  const tokens = tokensOf(`${text}\n`)
  const options = new Map<string, string | readonly string[]>()
  let at = 0

  const take = (...kinds: readonly Token['kind'][]): Token | undefined => {
    const found = tokens[at]
    if (found === undefined || !kinds.includes(found.kind)) return undefined
    at += 1
    return found
  }
  const need = (...kinds: readonly Token['kind'][]): Token => take(...kinds) ?? rejectLine(tokens[at]?.line)
  const skipLines = () => {
    while (take('end_of_line') !== undefined);
  }
  const list = (): readonly string[] => {
    const members: string[] = []
    for (skipLines(); take(']') === undefined; skipLines()) {
      members.push(need('text', 'bare').text)
      skipLines()
      if (tokens[at]?.kind !== ']') need(',')
    }
    return members
  }

  for (skipLines(); at < tokens.length; skipLines()) {
    const name = need('bare', 'text')
    need('=')
    const value = take('[') ? list() : need('text', 'bare').text
    need('end_of_line')
    const option = name.text.toLowerCase().replaceAll('-', '_')
    if (options.has(option)) throw new SyntaxError(`line ${name.line}: ${option} is set twice`)
    options.set(option, value)
  }
  return options
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  let line = 1
  for (token.lastIndex = 0; token.lastIndex < text.length;) {
    const { groups } = token.exec(text) ?? rejectLine(line)
    const { end_of_line, basic, literal, bare, sign } = groups ?? {}
    if (basic !== undefined) tokens.push({ kind: 'text', text: unescaped(basic, line), line })
    else if (literal !== undefined) tokens.push({ kind: 'text', text: literal.slice(1, -1), line })
    else if (bare !== undefined) tokens.push({ kind: 'bare', text: bare, line })
    else if (sign !== undefined) tokens.push({ kind: sign as Token['kind'], text: '', line })
    else if (end_of_line !== undefined) tokens.push({ kind: 'end_of_line', text: '', line: line++ })
  }
  return tokens
}

/** Reads the escapes that TOML and JSON share; all others are errors. */
function unescaped(quoted: string, line: number): string {
  try {
    return JSON.parse(quoted.replaceAll('\t', '\\t')) as string
  } catch {
    return rejectLine(line)
  }
}

function rejectLine(line: number | undefined): never {
  throw new SyntaxError(
    `line ${line ?? 1} is invalid: write NAME = VALUE, where VALUE is a "string", a number, true, false, or a list of these in brackets`,
  )
}
