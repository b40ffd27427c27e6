import { existsSync } from 'node:fs'
import { parseOrigin } from '../config/addresses.ts'
import { OperatorError, printable } from '../core/errors.ts'
import { readOptionsOf } from '../setup/oauth2-proxy-sources.ts'
import { levels, translate, type Translated } from '../setup/oauth2-proxy.ts'
import { CallFault, commandPrefix, faultOf, reader, readOptions, type Terminal } from './command.ts'
import { displayName, readText, writeText } from './given-file.ts'
import { type Paint, withoutColors } from './paint.ts'

/** The arguments of `gatehouse import oauth2-proxy`. */
interface ImportTask {
  /** Files with options; `-` is standard input. */
  readonly files: readonly string[]
  /** Arguments of oauth2-proxy. */
  readonly args: readonly string[]
  /** The service of a Compose file. Absent: the one that runs oauth2-proxy. */
  readonly service: string | undefined
  /** The origin at which browsers reach the gateway, when redirect_url does not contain it. */
  readonly url: string | undefined
  /** The file to write; `undefined`: standard output. */
  readonly target: string | undefined
  /** Overwrite an existing file. */
  readonly force: boolean
}

const options = {
  url: { type: 'string' },
  service: { type: 'string' },
  out: { type: 'string', short: 'o' },
  force: { type: 'boolean', default: false },
} as const

/** Reads the arguments of `gatehouse import`. */
export const readImportCall = reader((argv) => {
  const end = argv.indexOf('--')
  const { values, positionals } = readOptions(end < 0 ? argv : argv.slice(0, end), options)
  const args = end < 0 ? [] : argv.slice(end + 1)
  const [from, ...files] = positionals
  if (from !== 'oauth2-proxy') throw new CallFault('import supports one gateway: import oauth2-proxy FILE')
  if (files.length === 0 && args.length === 0)
    throw new CallFault('import oauth2-proxy needs a configuration file (- is standard input), or flags after --')
  const { url, service, out: target, force } = values
  const fault = faultOf(parseOrigin, url)
  if (fault !== undefined) throw new CallFault(`--url: ${fault}`)
  return async (terminal) => importOauth2Proxy({ files, args, service, url, target, force }, terminal)
})

/**
 * `gatehouse import oauth2-proxy`: translates a configuration of oauth2-proxy, and prints notes
 * about what is different.
 * @throws {OperatorError} when a file cannot be read or written; the message quotes none of its
 * content
 */
export function importOauth2Proxy(task: ImportTask, terminal: Terminal): number {
  const { url, target, force } = task
  if (target !== undefined && existsSync(target) && !force)
    throw new OperatorError(`${target} exists already; --force overwrites it`)
  const { yaml, notes } = translateAll(task, url)
  if (target === undefined) terminal.out(yaml)
  else writeText(target, yaml, force)
  terminal.err(notesText(notes, terminal.paintErr ?? withoutColors))
  terminal.err(
    `Only what was given is translated. Give import the flags (after --) and the OAUTH2_PROXY_ variables of oauth2-proxy too.\n` +
      `Review the result, then run: ${commandPrefix(terminal)} check --config ${target ?? 'FILE'}\n`,
  )
  return 0
}

function translateAll({ files, args, service }: ImportTask, url: string | undefined): Translated {
  const texts = files.map((file) => ({ name: displayName(file), text: readText(file).replace(/^\ufeff/, '') }))
  try {
    return translate(readOptionsOf(texts, args, service), url)
  } catch (error) {
    if (error instanceof SyntaxError) throw new OperatorError(error.message)
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
