import { existsSync, writeFileSync } from 'node:fs'
import { parseOrigin } from '../config/addresses.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { printable } from '../core/printable.ts'
import { readFlatToml } from '../setup/flat-toml.ts'
import { levels, translate, type Translated } from '../setup/oauth2-proxy.ts'
import { type Call, calledAs, readOptions, type Terminal } from './command.ts'
import { calledFile, textOf } from './given-file.ts'
import { type Paint, plainly } from './paint.ts'

/** What `gatehouse import oauth2-proxy` is given. */
export interface ImportTask {
  readonly file: string
  /** Where browsers reach the gateway, when it does not follow from redirect_url. */
  readonly url: string | undefined
  /** Absent: standard output. */
  readonly target: string | undefined
  /** Overwrite what is there. */
  readonly force: boolean
}

const options = {
  url: { type: 'string' },
  out: { type: 'string', short: 'o' },
  force: { type: 'boolean', default: false },
} as const

/** What stands behind `gatehouse import`. */
export function readImportCall(argv: readonly string[]): Call {
  const read = readOptions(argv, options)
  if (!read.ok) return read
  const [from, file, ...more] = read.positionals
  if (from !== 'oauth2-proxy')
    return { fault: 'import wants to know from what, and can do one: import oauth2-proxy FILE' }
  if (file === undefined || more.length > 0)
    return { fault: 'import oauth2-proxy wants one file, its configuration; - is standard input' }
  const { url, out: target, force } = read.values
  const fault = url === undefined ? undefined : faultIn(url)
  if (fault !== undefined) return { fault: `--url: ${fault}` }
  return { carryOut: async (terminal) => importOauth2Proxy({ file, url, target, force }, terminal) }
}

function faultIn(url: string): string | undefined {
  try {
    parseOrigin(url)
    return undefined
  } catch (error) {
    if (error instanceof SyntaxError) return error.message
    throw error
  }
}

/**
 * `gatehouse import oauth2-proxy`: a configuration in place of that of oauth2-proxy, and what is
 * otherwise, for a person to read.
 * @throws {OperatorError} which quotes nothing of the file
 */
export function importOauth2Proxy({ file, url, target, force }: ImportTask, terminal: Terminal): number {
  if (target !== undefined && existsSync(target) && !force)
    throw new OperatorError(`${target} is there already: --force overwrites it`)
  const { yaml, notes } = translated(file, url)
  if (target === undefined) terminal.out(yaml)
  else write(target, yaml, force)
  terminal.err(notesText(notes, terminal.paintErr ?? plainly))
  terminal.err(
    `What oauth2-proxy was told by flags or OAUTH2_PROXY_ variables is not translated: this was the file alone.\n` +
      `Read what became of it, then: ${calledAs(terminal)} check --config ${target ?? 'FILE'}\n`,
  )
  return 0
}

function translated(file: string, url: string | undefined): Translated {
  const told = calledFile(file)
  const text = textOf(file).replace(/^\ufeff/, '')
  if (/^(?:upstreamConfig|injectRequestHeaders|injectResponseHeaders|providers):/m.test(text))
    throw new OperatorError(
      `${told} is an alpha configuration (YAML) of oauth2-proxy, which is not translated: docs/migrating/oauth2-proxy.md has a table`,
    )
  try {
    return translate(readFlatToml(text), url)
  } catch (error) {
    if (error instanceof SyntaxError) throw new OperatorError(`${told}: ${error.message}`)
    throw error
  }
}

function write(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${reason(error)}`, { cause: error })
  }
}

const titles = {
  decide: 'To be decided before it is used',
  lost: 'Not translated',
  changed: 'Translated, and otherwise than before',
  unneeded: 'Not needed',
} as const
const colours = { decide: 'red', lost: 'yellow', changed: 'cyan', unneeded: 'grey' } as const

function notesText(notes: Translated['notes'], paint: Paint): string {
  return levels
    .map((level) => {
      const lines = notes
        .filter((note) => note.level === level)
        .map(({ option, text }) => `  ${paint(colours[level], printable(option))}: ${printable(text)}\n`)
      return lines.length === 0 ? '' : `${paint('bold', titles[level])}\n${lines.join('')}\n`
    })
    .join('')
}
