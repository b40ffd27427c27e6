import { parseArgs, type ParseArgsConfig } from 'node:util'
import { didYouMean } from '../config/document/did-you-mean.ts'
import type { Paint } from './paint.ts'

/** What every command is given. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The result. */
  readonly out: (text: string) => void
  /** Everything else that a person is told. */
  readonly err: (text: string) => void
  /** Asks a person, and waits for a line; absent when there is nobody at the terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
  /** How the two are coloured; plain when absent. */
  readonly paintOut?: Paint
  readonly paintErr?: Paint
}

/** What a command about a configuration is given. */
export interface CommandInput extends Terminal {
  readonly file: string
}

/**
 * What is to be done with the arguments of a command: carry it out, say what is wrong with the
 * call, or how it is done.
 */
export type Call =
  { readonly carryOut: (terminal: Terminal) => Promise<number> } | { readonly fault: string } | { readonly help: true }

/** Reads what stands behind a command's name. */
export type CommandReader = (argv: readonly string[]) => Call

type Options = NonNullable<ParseArgsConfig['options']>

/** The option of every command about a configuration. */
export const configOption = { config: { type: 'string', short: 'c', default: 'gateway.yaml' } } as const

/** The option of every command that has a result for programs, too. */
export const formatOption = { format: { type: 'string', default: 'text' } } as const

/** What is wrong with a format that is asked for. */
export function formatFault(wanted: string, formats: readonly string[] = ['text', 'json']): string | undefined {
  return formats.includes(wanted) ? undefined : `--format is one of ${formats.join(', ')}`
}

/** Options and positionals, or what is wrong with them; `help` when that is asked for. */
export function readOptions<T extends Options>(
  argv: readonly string[],
  options: T,
):
  | (ReturnType<typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>> & { readonly ok: true })
  | (Exclude<Call, { carryOut: unknown }> & { readonly ok: false }) {
  const all = { ...options, help: { type: 'boolean', short: 'h' } } as const
  const call = { args: [...argv], allowPositionals: true, options: all }
  const { tokens } = parseArgs({ ...call, strict: false, tokens: true })
  const fault = faultIn(
    tokens.flatMap((token) => (token.kind === 'option' ? [token] : [])),
    all,
  )
  if (fault !== undefined) return { ok: false, fault }
  const read = parseArgs(call)
  if ((read.values as { help?: boolean }).help === true) return { ok: false, help: true }
  return {
    ...(read as ReturnType<typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>>),
    ok: true,
  }
}

interface GivenOption {
  readonly name: string
  /** As it was written: `-c`, `--config`. */
  readonly rawName: string
  readonly value?: string | undefined
  /** The value stands behind "=", or behind the letter. */
  readonly inlineValue?: boolean | undefined
}

/** What is wrong with options, in words that are not those of Node. */
function faultIn(given: readonly GivenOption[], options: Options): string | undefined {
  const seen = new Set<string>()
  for (const { name, rawName, value, inlineValue } of given) {
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined) return noOption(rawName, options)
    if (option.type === 'boolean' && value !== undefined) return `${rawName} takes no value`
    if (option.type === 'string' && value === undefined) return `${rawName} wants a value`
    if (inlineValue === false && value !== undefined && /^-./.test(value))
      return `${rawName} wants a value; one that begins with "-" is written --${name}=${value}`
    // The last one would win, and nobody would know.
    if (seen.has(name) && option.multiple !== true) return `--${name} is given twice`
    seen.add(name)
  }
  return undefined
}

function noOption(rawName: string, options: Options): string {
  const meant = didYouMean(rawName, Object.keys(options))
  return `there is no option ${rawName}${meant === undefined ? '' : `; did you mean --${meant}?`}`
}

/** For a command that is given a configuration, and nothing else. */
export function aboutFile(command: (input: CommandInput) => Promise<number>): CommandReader {
  return (argv) => {
    const read = readOptions(argv, configOption)
    if (!read.ok) return 'fault' in read ? { fault: `${read.fault}; a file is named with --config FILE` } : read
    const tooMuch = unexpected(read.positionals)
    if (tooMuch !== undefined) return { fault: `${tooMuch}; a file is named with --config FILE` }
    return { carryOut: (terminal) => command({ ...terminal, file: read.values.config }) }
  }
}

/** What is wrong with positionals where there should be none. */
export function unexpected(positionals: readonly string[]): string | undefined {
  return positionals.length > 0 ? `"${positionals.join(' ')}" is too much` : undefined
}

/** How this command was called, to be written before what is to be called next. */
export function calledAs({ env }: Pick<Terminal, 'env'>): string {
  // npm sets it for what a script runs: the one of a clone is named gatehouse.
  return env['npm_lifecycle_event'] === 'gatehouse' ? 'npm run -s gatehouse --' : 'gatehouse'
}
