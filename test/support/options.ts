import process from 'node:process'
import { parseArgs, type ParseArgsConfig } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

/**
 * Reads the options of a command. `--help` lists them. An unknown one, or one that needs a number
 * as its default is one, ends the process with a sentence and exit code 2.
 */
export function readOptions<const T extends Options>(command: string, options: T) {
  try {
    const parsed = parseArgs({ options: { ...options, help: { type: 'boolean' } } })
    const values: Readonly<Record<string, unknown>> = parsed.values
    if (values['help'] === true && !('help' in options)) {
      process.stdout.write(`${command} -- ${Object.entries(options).map(usage).join(' ')}\n`)
      return process.exit(0)
    }
    for (const [name, { default: usual }] of Object.entries(options)) {
      const given = values[name]
      if (isNumber(usual) && !isNumber(given)) throw new Error(`--${name} needs a number, not ${String(given)}.`)
    }
    return parsed.values as ReturnType<typeof parseArgs<{ options: T }>>['values']
  } catch (error) {
    return refuse((error as Error).message)
  }
}

/** Ends the process because an option is wrong. */
export function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`)
  process.exit(2)
}

function usage([name, { type, multiple = false, default: usual }]: [string, Options[string]]): string {
  const value = isNumber(usual) ? usual : name.toUpperCase()
  return type === 'boolean' ? `[--${name}]` : `[--${name} ${value}${multiple ? ',…' : ''}]`
}

function isNumber(value: unknown): value is string {
  return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value)
}
