import { existsSync } from 'node:fs'
import { parseOrigin } from '../config/addresses.ts'
import { OperatorError, printable } from '../core/errors.ts'
import { readFlatToml } from '../setup/flat-toml.ts'
import { levels, translate, type Translated } from '../setup/oauth2-proxy.ts'
import { CallFault, commandPrefix, faultOf, reader, readOptions, type Terminal } from './command.ts'
import { displayName, readText, writeText } from './given-file.ts'
import { type Paint, withoutColors } from './paint.ts'

/** The arguments of `gatehouse import oauth2-proxy`. */
interface ImportTask {
  readonly file: string
  /** The origin at which browsers reach the gateway, when redirect_url does not contain it. */
  readonly url: string | undefined
  /** The file to write; `undefined`: standard output. */
  readonly target: string | undefined
  /** Overwrite an existing file. */
  readonly force: boolean
}

const options = {
  url: { type: 'string' },
  out: { type: 'string', short: 'o' },
  force: { type: 'boolean', default: false },
} as const

/** Reads the arguments of `gatehouse import`. */
export const readImportCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, options)
  const [from, file, ...more] = positionals
  if (from !== 'oauth2-proxy') throw new CallFault('import supports one gateway: import oauth2-proxy FILE')
  if (file === undefined || more.length > 0)
    throw new CallFault('import oauth2-proxy needs one configuration file; - is standard input')
  const { url, out: target, force } = values
  const fault = faultOf(parseOrigin, url)
  if (fault !== undefined) throw new CallFault(`--url: ${fault}`)
  return async (terminal) => importOauth2Proxy({ file, url, target, force }, terminal)
})

/**
 * `gatehouse import oauth2-proxy`: translates a configuration of oauth2-proxy, and prints notes
 * about what is different.
 * @throws {OperatorError} when a file cannot be read or written; the message quotes none of its
 * content
 */
export function importOauth2Proxy({ file, url, target, force }: ImportTask, terminal: Terminal): number {
  if (target !== undefined && existsSync(target) && !force)
    throw new OperatorError(`${target} exists already; --force overwrites it`)
  const { yaml, notes } = translateFile(file, url)
  if (target === undefined) terminal.out(yaml)
  else writeText(target, yaml, force)
  terminal.err(notesText(notes, terminal.paintErr ?? withoutColors))
  terminal.err(
    `Only the file was translated. Flags and OAUTH2_PROXY_ variables of oauth2-proxy are not in it.\n` +
      `Review the result, then run: ${commandPrefix(terminal)} check --config ${target ?? 'FILE'}\n`,
  )
  return 0
}

function translateFile(file: string, url: string | undefined): Translated {
  const name = displayName(file)
  const text = readText(file).replace(/^\ufeff/, '')
  if (/^(?:upstreamConfig|injectRequestHeaders|injectResponseHeaders|providers):/m.test(text))
    throw new OperatorError(
      `${name} is an alpha configuration (YAML) of oauth2-proxy, which import does not support; docs/migrating/oauth2-proxy.md has a table`,
    )
  try {
    return translate(readFlatToml(text), url)
  } catch (error) {
    if (error instanceof SyntaxError) throw new OperatorError(`${name}: ${error.message}`)
    throw error
  }
}

const titles = {
  decide: 'Decide before use',
  lost: 'Not translated',
  changed: 'Translated with a difference',
  unneeded: 'Not needed',
} as const
const colors = { decide: 'red', lost: 'yellow', changed: 'cyan', unneeded: 'grey' } as const

function notesText(notes: Translated['notes'], paint: Paint): string {
  return levels
    .map((level) => {
      const lines = notes
        .filter((note) => note.level === level)
        .map(({ option, text }) => `  ${paint(colors[level], printable(option))}: ${printable(text)}\n`)
      return lines.length === 0 ? '' : `${paint('bold', titles[level])}\n${lines.join('')}\n`
    })
    .join('')
}
