import { parseArgs, type ParseArgsConfig } from 'node:util'
import { didYouMean } from '../config/document/did-you-mean.ts'
import type { Paint } from './paint.ts'

/** The input and output of every command. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Writes the result. */
  readonly out: (text: string) => void
  /** Writes errors and all other messages for people. */
  readonly err: (text: string) => void
  /** Asks a question and waits for a line of input; absent without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
  /** The colors of `out` and `err`; absent: no colors. */
  readonly paintOut?: Paint
  readonly paintErr?: Paint
}

/** The input and output of a command that reads a configuration. */
export interface CommandInput extends Terminal {
  readonly file: string
}

/** Runs a command with its arguments. Resolves to the exit code. */
type CarryOut = (terminal: Terminal) => Promise<number>

/** What the arguments of a command mean: run it, report a fault, or print its help text. */
export type Call = { readonly carryOut: CarryOut } | { readonly fault: string } | { readonly help: true }

/** Reads the arguments that follow a command's name. */
export type CommandReader = (argv: readonly string[]) => Call

/** What is wrong with a call. */
export class CallFault extends Error {}

class HelpWanted extends Error {}

/** The reader of a command. `read` may throw a CallFault, as the functions below do. */
export function reader(read: (argv: readonly string[]) => CarryOut): CommandReader {
  return (argv) => {
    try {
      return { carryOut: read(argv) }
    } catch (error) {
      if (error instanceof HelpWanted) return { help: true }
      if (error instanceof CallFault) return { fault: error.message }
      throw error
    }
  }
}

type Options = NonNullable<ParseArgsConfig['options']>

/** The option of every command that reads a configuration. */
export const configOption = { config: { type: 'string', short: 'c', default: 'gateway.yaml' } } as const

/** The option of every command that can print its result for programs. */
export const formatOption = { format: { type: 'string', default: 'text' } } as const

/** The value of `--format`, which must be one of these. */
export function formatOf<F extends string>(given: string, formats: readonly F[]): F {
  const format = formats.find((each) => each === given)
  if (format === undefined) throw new CallFault(`--format must be one of ${formats.join(', ')}`)
  return format
}

/** Whether `--format` is `json`, and not `text`. */
export function isJson(format: string): boolean {
  return formatOf(format, ['text', 'json']) === 'json'
}

/** A result for programs. */
export function jsonText(result: object): string {
  return `${JSON.stringify({ version: 1, ...result }, null, 2)}\n`
}

type Read<T extends Options> = ReturnType<typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>>

/** The values of options, as {@link readOptions} returns them. */
export type ValuesOf<T extends Options> = Read<T>['values']

/** Reads options and positionals. `hint` ends the message about a fault in an option. */
export function readOptions<T extends Options>(
  argv: readonly string[],
  options: T,
  hint: (isUnknown: boolean) => string = () => '',
): Read<T> {
  const all = { ...options, help: { type: 'boolean', short: 'h' } } as const
  const call = { args: [...argv], allowPositionals: true, options: all }
  const { tokens } = parseArgs({ ...call, strict: false, tokens: true })
  checkOptions(
    tokens.flatMap((token) => (token.kind === 'option' ? [token] : [])),
    all,
    hint,
  )
  const read = parseArgs(call)
  if ((read.values as { help?: boolean }).help === true) throw new HelpWanted()
  return read as Read<T>
}

interface GivenOption {
  readonly name: string
  /** As written: `-c`, `--config`. */
  readonly rawName: string
  readonly value?: string | undefined
  /** The value follows "=" or the letter directly, without a space. */
  readonly inlineValue?: boolean | undefined
}

/** Throws the first fault. The messages of Node.js are not written for people. */
function checkOptions(given: readonly GivenOption[], options: Options, hint: (isUnknown: boolean) => string): void {
  const seen = new Set<string>()
  const fail = (fault: string, isUnknown = false): never => {
    throw new CallFault(`${fault}${hint(isUnknown)}`)
  }
  for (const { name, rawName, value, inlineValue } of given) {
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined) return fail(unknownOption(rawName, options), true)
    if (option.type === 'boolean' && value !== undefined) fail(`${rawName} takes no value`)
    if (option.type === 'string' && value === undefined) fail(`${rawName} needs a value`)
    if (inlineValue === false && value !== undefined && /^-./.test(value))
      fail(`${rawName} needs a value; write a value that begins with "-" as --${name}=${value}`)
    // parseArgs would silently use the last one.
    if (seen.has(name) && option.multiple !== true) fail(`--${name} is given twice`)
    seen.add(name)
  }
}

function unknownOption(rawName: string, options: Options): string {
  if (rawName === '--json' && 'format' in options) return 'unknown option --json; write --format json'
  const meant = didYouMean(rawName, Object.keys(options))
  return `unknown option ${rawName}${meant === undefined ? '' : `; did you mean --${meant}?`}`
}

/** People give the file as an argument. */
export const fileHint = '; name the file with --config FILE'

/** A reader for a command whose only option is `--config`. */
export function aboutFile(command: (input: CommandInput) => Promise<number>): CommandReader {
  return reader((argv) => {
    const { values, positionals } = readOptions(argv, configOption, () => fileHint)
    takeNone(positionals, fileHint)
    return (terminal) => command({ ...terminal, file: values.config })
  })
}

/** The fault that a parser finds in a text; `undefined` when the text is valid or missing. */
export function faultOf(parse: (text: string) => unknown, text: string | undefined): string | undefined {
  try {
    if (text !== undefined) parse(text)
    return undefined
  } catch (error) {
    if (error instanceof SyntaxError) return error.message
    throw error
  }
}

/** Throws when there are positionals, where a command takes none. */
export function takeNone(positionals: readonly string[], hint = ''): void {
  if (positionals.length > 0) throw new CallFault(`unexpected argument: "${positionals.join(' ')}"${hint}`)
}

/** How the person called this program: the start of each command line that a message suggests. */
export function commandPrefix({ env }: Pick<Terminal, 'env'>): string {
  // npm sets the name of the script; a clone of the sources has a script named gatehouse.
  return env['npm_lifecycle_event'] === 'gatehouse' ? 'npm run -s gatehouse --' : 'gatehouse'
}
