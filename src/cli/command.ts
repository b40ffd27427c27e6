import { parseArgs, type ParseArgsConfig } from 'node:util'
import { reason } from '../core/errors.ts'
import type { Paint } from './paint.ts'

/** What every command is given. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The result. */
  readonly out: (text: string) => void
  /** Everything else that a person is told. */
  readonly err: (text: string) => void
  /** How the two are coloured; plain when absent. */
  readonly paintOut?: Paint
  readonly paintErr?: Paint
}

/** What a command about a configuration is given. */
export interface CommandInput extends Terminal {
  readonly file: string
}

/** What is to be done with the arguments of a command: carry it out, say what is wrong with the call, or how it is done. */
export type Call =
  { readonly carryOut: (terminal: Terminal) => Promise<number> } | { readonly fault: string } | { readonly help: true }

/** Reads what stands behind a command's name. */
export type CommandReader = (argv: readonly string[]) => Call

type Options = NonNullable<ParseArgsConfig['options']>

/** The option of every command about a configuration. */
export const configOption = { config: { type: 'string', short: 'c', default: 'gateway.yaml' } } as const

/** Options and positionals, or what is wrong with them; `help` when that is asked for. */
export function readOptions<T extends Options>(
  argv: readonly string[],
  options: T,
):
  | (ReturnType<typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>> & { readonly ok: true })
  | (Exclude<Call, { carryOut: unknown }> & { readonly ok: false }) {
  try {
    const all = { ...options, help: { type: 'boolean', short: 'h' } } as const
    const read = parseArgs({ args: [...argv], allowPositionals: true, options: all })
    if ((read.values as { help?: boolean }).help === true) return { ok: false, help: true }
    return {
      ...(read as ReturnType<typeof parseArgs<{ args: string[]; allowPositionals: true; options: T }>>),
      ok: true,
    }
  } catch (error) {
    // The first sentence is about what was given; what follows is about how Node reads arguments.
    return { ok: false, fault: reason(error).replace(/\.(?:\s.*)?$/s, '') }
  }
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
