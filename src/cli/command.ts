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

/**
 * The meaning of a command's arguments: run the command, report a fault in the call, or print the
 * help text.
 */
export type Call = { readonly carryOut: (terminal: Terminal) => Promise<number> } | Fault | { readonly help: true }

/** What is wrong with a call. */
export interface Fault {
  readonly fault: string
  readonly isUnknownOption?: boolean
}

/** Reads the arguments that follow a command's name. */
export type CommandReader = (argv: readonly string[]) => Call

type Options = NonNullable<ParseArgsConfig['options']>

/** The option of every command that reads a configuration. */
export const configOption = { config: { type: 'string', short: 'c', default: 'gateway.yaml' } } as const

/** The option of every command that can print its result for programs. */
export const formatOption = { format: { type: 'string', default: 'text' } } as const

/** The fault in the value of `--format`; `undefined` when it is valid. */
export function formatFault(wanted: string, formats: readonly string[] = ['text', 'json']): string | undefined {
  return formats.includes(wanted) ? undefined : `--format must be one of ${formats.join(', ')}`
}

type Read<T extends Options> = ReturnType<typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>>

/** The values of options, as {@link readOptions} returns them. */
export type ValuesOf<T extends Options> = Read<T>['values']

/** Reads options and positionals. Returns the first fault instead, or `help` for `--help`. */
export function readOptions<T extends Options>(
  argv: readonly string[],
  options: T,
): (Read<T> & { readonly ok: true }) | (Exclude<Call, { carryOut: unknown }> & { readonly ok: false }) {
  const all = { ...options, help: { type: 'boolean', short: 'h' } } as const
  const call = { args: [...argv], allowPositionals: true, options: all }
  const { tokens } = parseArgs({ ...call, strict: false, tokens: true })
  const fault = faultIn(
    tokens.flatMap((token) => (token.kind === 'option' ? [token] : [])),
    all,
  )
  if (fault !== undefined) return { ok: false, ...fault }
  const read = parseArgs(call)
  if ((read.values as { help?: boolean }).help === true) return { ok: false, help: true }
  return { ...(read as Read<T>), ok: true }
}

interface GivenOption {
  readonly name: string
  /** As written: `-c`, `--config`. */
  readonly rawName: string
  readonly value?: string | undefined
  /** The value follows "=" or the letter directly, without a space. */
  readonly inlineValue?: boolean | undefined
}

/** The first fault in the options. The messages of Node.js are not written for people. */
function faultIn(given: readonly GivenOption[], options: Options): Fault | undefined {
  const seen = new Set<string>()
  for (const { name, rawName, value, inlineValue } of given) {
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined) return { fault: unknownOption(rawName, options), isUnknownOption: true }
    if (option.type === 'boolean' && value !== undefined) return { fault: `${rawName} takes no value` }
    if (option.type === 'string' && value === undefined) return { fault: `${rawName} needs a value` }
    if (inlineValue === false && value !== undefined && /^-./.test(value))
      return { fault: `${rawName} needs a value; write a value that begins with "-" as --${name}=${value}` }
    // parseArgs would silently use the last one.
    if (seen.has(name) && option.multiple !== true) return { fault: `--${name} is given twice` }
    seen.add(name)
  }
  return undefined
}

function unknownOption(rawName: string, options: Options): string {
  const meant = didYouMean(rawName, Object.keys(options))
  return `unknown option ${rawName}${meant === undefined ? '' : `; did you mean --${meant}?`}`
}

/** People give the file as an argument. */
export const fileHint = '; name the file with --config FILE'

/** A reader for a command whose only option is `--config`. */
export function aboutFile(command: (input: CommandInput) => Promise<number>): CommandReader {
  return (argv) => {
    const read = readOptions(argv, configOption)
    if (!read.ok) return 'fault' in read ? { fault: `${read.fault}${fileHint}` } : read
    const extra = unexpected(read.positionals, fileHint)
    if (extra !== undefined) return { fault: extra }
    return { carryOut: (terminal) => command({ ...terminal, file: read.values.config }) }
  }
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

/** The fault when positionals are given to a command that takes none. */
export function unexpected(positionals: readonly string[], hint = ''): string | undefined {
  return positionals.length > 0 ? `unexpected argument: "${positionals.join(' ')}"${hint}` : undefined
}

/** How the person called this program: the start of each command line that a message suggests. */
export function commandPrefix({ env }: Pick<Terminal, 'env'>): string {
  // npm sets the name of the script; a clone of the sources has a script named gatehouse.
  return env['npm_lifecycle_event'] === 'gatehouse' ? 'npm run -s gatehouse --' : 'gatehouse'
}
